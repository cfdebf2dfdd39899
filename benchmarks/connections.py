"""A thousand connections of mixed transports, one turn each: ``python -m benchmarks.connections [COUNT]``.

Starts the listener as a process of its own, and reports how long the turns took, whether every update came in order,
and the server's threads and memory: before, at the peak, and when every connection has ended.
"""

import json
import sys
import time
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
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


async def one_turn(url: str, number: int, tally: Tally, starting: anyio.Semaphore, everybody: anyio.Event) -> None:
    """Open, wait until all are open, hold one turn, leave."""
    async with starting:
        stack = wire_to(url, number)
        wire = await stack.__aenter__()
    try:
        async with peer_on(wire) as peer:
            async with starting:
                await peer.initialize()
                session = await peer.new_session()
            tally.open += 1
            if tally.open == tally.expected:
                tally.all_open.set()
            await everybody.wait()
            await hold_turn(peer, session, tally, starting)
    finally:
        await stack.__aexit__(None, None, None)


async def hold_turn(peer: RawPeer, session: str, tally: Tally, starting: anyio.Semaphore) -> None:
    async with starting:
        began = time.perf_counter()
        answer = await peer.prompt(session, f"stream:{UPDATES}")
        tally.turns.append(time.perf_counter() - began)
    texts = [text_of(update) for update in peer.updates(session)]
    if len(texts) != UPDATES or peer.log[-1] is not answer or "result" not in answer:
        tally.faults.append(f"{len(texts)} updates, {json.dumps(answer)[:200]}")


async def run(count: int) -> int:
    tally, starting, everybody = Tally(count), anyio.Semaphore(AT_ONCE), anyio.Event()
    async with server() as (process, url):
        before = usage(process)
        async with anyio.create_task_group() as tasks:
            for number in range(count):
                tasks.start_soon(one_turn, url, number, tally, starting, everybody)
            with anyio.fail_after(600):
                await tally.all_open.wait()
            peak = usage(process)
            everybody.set()
        with anyio.fail_after(60):
            # Another process is watched: it tells no event.
            while (after := usage(process))["connections"] > before["connections"]:  # noqa: ASYNC110
                await anyio.sleep(0.1)
    turns = sorted(tally.turns)
    print(f"connections {count}, turns {len(turns)}, faults {len(tally.faults)}")
    print(f"turn: median {turns[len(turns) // 2] * 1e3:.0f} ms, 99 % {turns[len(turns) * 99 // 100] * 1e3:.0f} ms")
    for name, numbers in (("before", before), ("peak", peak), ("after", after)):
        print(f"{name:>7}: " + ", ".join(f"{key} {value}" for key, value in numbers.items()))
    print("\n".join(tally.faults[:10]))
    return 1 if tally.faults else 0


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
