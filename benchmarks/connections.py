"""A thousand connections of mixed transports, one turn each: ``python -m benchmarks.connections [COUNT]``.

Starts the listener as a process of its own, and reports how long the turns took, whether every update came in order,
and the server's threads and memory: before, at the peak, and when every connection has ended.
"""

import json
import sys
import time
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import anyio
import httpx2
import psutil

from acp_integration.assembly import AgentBuilder
from acp_integration.endpoint import AcpEndpoint
from acp_integration.hosts import AcpListenerHost
from acp_integration.options import EndpointOptions, ListenerOptions
from acp_integration.testing.conformance.network import http_wire, websocket_wire
from acp_integration.testing.conformance.peer import RawPeer, peer_on, text_of
from acp_integration.testing.conformance.wire import Wire
from examples.agents import ProbeAgent

ROOT = Path(__file__).resolve().parent.parent
COUNT = 1000
UPDATES = 20
AT_ONCE = 50


@dataclass
class Tally:
    """What the connections saw."""

    expected: int
    open: int = 0
    all_open: anyio.Event = field(default_factory=anyio.Event)
    turns: list[float] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)


@asynccontextmanager
async def server() -> AsyncIterator[tuple[psutil.Process, str]]:
    """The listener with the probe agent: its process and its URL."""
    listener = await anyio.create_tcp_listener(local_host="127.0.0.1")
    async with listener:
        port = listener.extra(anyio.abc.SocketAttribute.local_port)
    command = [sys.executable, "-m", "benchmarks.connections", "serve", str(port)]
    async with await anyio.open_process(command, cwd=ROOT, stdout=None, stderr=None) as process:
        url = f"http://127.0.0.1:{port}/acp"
        try:
            await until_up(f"{url}/health")
            yield psutil.Process(process.pid), url
        finally:
            process.terminate()
            await process.wait()


async def serve(port: int) -> None:
    endpoint = AcpEndpoint(AgentBuilder(ProbeAgent).build_factory(), EndpointOptions(max_connections=10 * COUNT))
    async with AcpListenerHost(endpoint, ListenerOptions(port=port)) as host:
        await host.termination()


async def until_up(url: str) -> None:
    async with httpx2.AsyncClient(trust_env=False) as client:
        with anyio.fail_after(60):
            while not await answers(client, url):  # noqa: ASYNC110
                await anyio.sleep(0.05)


async def answers(client: httpx2.AsyncClient, url: str) -> bool:
    try:
        await client.get(url)
    except httpx2.TransportError:
        return False
    return True


def wire_to(url: str, number: int) -> AbstractAsyncContextManager[Wire]:
    return http_wire(url) if number % 2 else websocket_wire(url)


async def one_turn(url: str, number: int, tally: Tally, at_once: anyio.Semaphore, everybody: anyio.Event) -> None:
    """Open, wait until all are open, hold one turn, leave."""
    async with AsyncExitStack() as stack:
        async with at_once:
            wire = await stack.enter_async_context(wire_to(url, number))
            peer = await stack.enter_async_context(peer_on(wire))
            await peer.initialize()
            session = await peer.new_session()
        tally.open += 1
        if tally.open == tally.expected:
            tally.all_open.set()
        await everybody.wait()
        await hold_turn(peer, session, tally, at_once)


async def hold_turn(peer: RawPeer, session: str, tally: Tally, at_once: anyio.Semaphore) -> None:
    async with at_once:
        began = time.perf_counter()
        answer = await peer.prompt(session, f"stream:{UPDATES}")
        tally.turns.append(time.perf_counter() - began)
    texts = [text_of(update) for update in peer.updates(session)]
    if len(texts) != UPDATES or peer.log[-1] is not answer or "result" not in answer:
        tally.faults.append(f"{len(texts)} updates, {json.dumps(answer)[:200]}")


async def run(count: int) -> int:
    """Twice on the same server: what the second round adds to the memory would be a leak."""
    faults = 0
    async with server() as (process, url):
        print("before:", usage(process))
        for _ in range(2):
            tally = Tally(count)
            await one_round(url, tally, process)
            report(tally)
            with anyio.fail_after(60):
                # Another process is watched: it tells no event.
                while usage(process)["connections"]:  # noqa: ASYNC110
                    await anyio.sleep(0.1)
            print("after:", usage(process))
            faults += len(tally.faults)
    return 1 if faults else 0


async def one_round(url: str, tally: Tally, process: psutil.Process) -> None:
    at_once, everybody = anyio.Semaphore(AT_ONCE), anyio.Event()
    async with anyio.create_task_group() as tasks:
        for number in range(tally.expected):
            tasks.start_soon(one_turn, url, number, tally, at_once, everybody)
        with anyio.fail_after(600):
            await tally.all_open.wait()
        print("all open:", usage(process))
        everybody.set()


def report(tally: Tally) -> None:
    turns = sorted(tally.turns)
    median, slow = turns[len(turns) // 2], turns[len(turns) * 99 // 100]
    print(f"turns {len(turns)}, faults {len(tally.faults)}, median {median * 1e3:.0f} ms, 99 % {slow * 1e3:.0f} ms")
    print(*tally.faults[:10], sep="\n", end="")


def usage(process: psutil.Process) -> dict[str, int]:
    """Memory in MB, threads, and connections that somebody holds."""
    held = [item for item in process.net_connections("tcp") if item.status == psutil.CONN_ESTABLISHED]
    return {
        "MB": process.memory_info().rss // 2**20,
        "threads": process.num_threads(),
        "connections": len(held),
    }


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["serve", port]:
            anyio.run(serve, int(port))
        case [count]:
            sys.exit(anyio.run(run, int(count)))
        case _:
            sys.exit(anyio.run(run, COUNT))
