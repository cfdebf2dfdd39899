"""Several workers: ``python -m benchmarks.workers [PROMPTS]``.

First uvicorn with four workers and a new TCP connection for every request: says how many requests were refused, and how
many updates came, in order or not. Then two servers that share only Redis, likewise. Then what the hop to another
worker costs, over Unix sockets and over Redis, against the same worker, in one run.
"""

import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from functools import partial

import anyio
import uvicorn

from acp_integration.assembly import AgentBuilder
from acp_integration.endpoint import AcpEndpoint, EndpointApplication
from acp_integration.options import BackplaneOptions, EndpointOptions
from acp_integration.testing.conformance.network import http_wire
from acp_integration.testing.conformance.peer import RawPeer, peer_on, text_of
from acp_integration.testing.conformance.wire import WireRefused
from benchmarks.connections import ROOT, until_up
from examples.agents import ProbeAgent
from tests.conformance.cells import free_port, listens, round_robin

PROMPTS = 1000
UPDATES = 20
CONNECTIONS = 20
WORKERS = 4
ROUNDS = 7
ROUND_PROMPTS = 20
ROUND_UPDATES = 200


@dataclass
class Tally:
    """What the clients saw."""

    prompts: int = 0
    updates: int = 0
    refused: int = 0
    faults: list[str] = field(default_factory=list)


def workers_app() -> EndpointApplication:
    """What every worker of the first part serves."""
    return EndpointApplication(AcpEndpoint(AgentBuilder(ProbeAgent).build_factory()))


def serve(port: int, meeting: str) -> None:
    """One worker that is a server of its own, and meets others where it is told to."""
    options = EndpointOptions(workers=BackplaneOptions(url=meeting, key="benchmark"))
    app = EndpointApplication(AcpEndpoint(AgentBuilder(ProbeAgent).build_factory(), options))
    uvicorn.run(app, port=port, log_level="warning")


@asynccontextmanager
async def running(*command: str) -> AsyncIterator[str]:
    """A server as a process of its own; ``{port}`` in its command becomes a free port."""
    port = str(await free_port())
    words = [sys.executable, "-m", *(word.replace("{port}", port) for word in command)]
    async with await anyio.open_process(words, cwd=ROOT, stdout=None, stderr=None) as process:
        try:
            await until_up(f"http://127.0.0.1:{port}/acp/health")
            yield f"http://127.0.0.1:{port}/acp"
        finally:
            process.terminate()
            await process.wait()


async def converse(url: str, prompts: int, tally: Tally) -> None:
    """One connection whose every request may reach any worker."""
    async with http_wire(url, scattered=True) as wire, peer_on(wire) as peer:
        try:
            await peer.initialize()
            session = await peer.new_session()
            for _ in range(prompts):
                await one_prompt(peer, session, tally)
        except WireRefused as refused:
            tally.refused += 1
            tally.faults.append(str(refused))


async def one_prompt(peer: RawPeer, session: str, tally: Tally) -> None:
    before = len(peer.updates(session))
    answer = await peer.prompt(session, f"stream:{UPDATES}")
    fresh = [text_of(update) for update in peer.updates(session)[before:]]
    tally.prompts += 1
    tally.updates += len(fresh)
    if len(fresh) != UPDATES or peer.log[-1] is not answer or "result" not in answer:
        tally.faults.append(f"{len(fresh)} updates, then {answer}")


async def many_workers(prompts: int) -> int:
    """Four workers of one server."""
    app = "benchmarks.workers:workers_app"
    command = ["uvicorn", "--factory", app, "--workers", str(WORKERS), "--port", "{port}", "--log-level", "warning"]
    async with running(*command) as url:
        return await everything_arrives(f"{WORKERS} workers", url, prompts)


async def many_hosts(prompts: int, meeting: str) -> int:
    """Two servers that share only Redis, behind a round robin."""
    async with AsyncExitStack() as stack:
        serving = partial(running, "benchmarks.workers", "serve", "{port}", meeting)
        urls = [await stack.enter_async_context(serving()) for _ in range(2)]
        url = await stack.enter_async_context(round_robin(urls))
        return await everything_arrives("2 servers that share Redis", url, prompts)


async def everything_arrives(name: str, url: str, prompts: int) -> int:
    tally = Tally()
    began = time.perf_counter()
    async with anyio.create_task_group() as tasks:
        for _ in range(CONNECTIONS):
            tasks.start_soon(converse, url, prompts // CONNECTIONS, tally)
    seconds = time.perf_counter() - began
    print(f"{name}: {tally.prompts} prompts, {tally.updates} updates in {seconds:.1f} s,", end=" ")
    print(f"{tally.refused} refused, {len(tally.faults)} faults", flush=True)
    print(*tally.faults[:10], sep="\n", end="")
    return 1 if tally.faults or tally.prompts < prompts // CONNECTIONS * CONNECTIONS else 0


@asynccontextmanager
async def redis() -> AsyncIterator[str]:
    """A Redis of this run's own, and its URL."""
    port = str(await free_port())
    words = ["redis-server", "--port", port, "--bind", "127.0.0.1", "--save", "", "--loglevel", "warning"]
    async with await anyio.open_process(words, stdout=subprocess.DEVNULL) as process:
        try:
            with anyio.fail_after(20):
                while not await listens(int(port)):  # noqa: ASYNC110
                    await anyio.sleep(0.02)
            yield f"redis://127.0.0.1:{port}/0"
        finally:
            process.terminate()


async def hop(name: str, meeting: str, budget: float) -> int:
    """The second part: the connection of one worker, used through it and through another one."""
    async with AsyncExitStack() as stack:
        serving = partial(running, "benchmarks.workers", "serve", "{port}", meeting)
        owner, edge = [await stack.enter_async_context(serving()) for _ in range(2)]
        here, there = [], []
        for _ in range(ROUNDS):
            here.append(await seconds_each(owner, owner))
            there.append(await seconds_each(owner, edge))
    same, other = statistics.median(here), statistics.median(there)
    ratio = statistics.median(far / near for near, far in zip(here, there, strict=True))
    print(
        f"{name}: an event {same * 1e6:.1f} us on the same worker, {other * 1e6:.1f} us through another one:", end=" "
    )
    print(f"{ratio:.2f} times (at most {budget})")
    return 0 if ratio <= budget else 1


async def seconds_each(owner: str, reached: str) -> float:
    """How long an event takes, one prompt after the other."""
    async with http_wire(owner) as wire, peer_on(wire) as peer:
        await peer.initialize()
        wire.url = reached
        session = await peer.new_session()
        await peer.prompt(session, f"stream:{ROUND_UPDATES}")
        began = time.perf_counter()
        for _ in range(ROUND_PROMPTS):
            await peer.prompt(session, f"stream:{ROUND_UPDATES}")
        return (time.perf_counter() - began) / (ROUND_PROMPTS * (ROUND_UPDATES + 1))


async def run(prompts: int) -> int:
    """Every part; 0 if each keeps what it promises."""
    failed = await many_workers(prompts)
    with tempfile.TemporaryDirectory(prefix="acp-") as directory:
        failed |= await hop("Unix sockets", f"unix:{directory}", 1.5)
    async with redis() as url:
        failed |= await many_hosts(prompts, url)
        failed |= await hop("Redis", url, 4)
    return failed


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["serve", port, meeting]:
            serve(int(port), meeting)
        case [prompts]:
            sys.exit(anyio.run(run, int(prompts)))
        case _:
            sys.exit(anyio.run(run, PROMPTS))
