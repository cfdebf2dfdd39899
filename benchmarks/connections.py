"""A thousand connections of mixed transports, one turn each: ``python -m benchmarks.connections [COUNT] [SERVER]``.

Starts the server (``hypercorn``, which is our own listener, or ``uvicorn``) as a process of its own, and reports how
long the turns took, whether every update came in order, and what the server holds: before, at the peak, and afterwards.

Afterwards means: when the server holds no connection and no task more than before. Hypercorn keeps those of a closed
connection for as long as it would have kept the connection alive. What the C library keeps of freed memory is told
apart by asking it to give everything back.
"""

import asyncio
import ctypes
import gc
import json
import signal
import sys
import time
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import anyio
import httpx2
import psutil
import uvicorn
from anyio.abc import Process
from anyio.streams.buffered import BufferedByteReceiveStream

from acp_integration.assembly import AgentBuilder
from acp_integration.endpoint import AcpEndpoint, EndpointApplication
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
ROUNDS = 3
LEFT_WITHIN = 120


@dataclass
class Tally:
    """What the connections saw."""

    expected: int
    open: int = 0
    all_open: anyio.Event = field(default_factory=anyio.Event)
    turns: list[float] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)


@asynccontextmanager
async def server(name: str) -> AsyncIterator[tuple["Watched", str]]:
    """The server with the probe agent, and its URL."""
    listener = await anyio.create_tcp_listener(local_host="127.0.0.1")
    async with listener:
        port = listener.extra(anyio.abc.SocketAttribute.local_port)
    command = [sys.executable, "-m", "benchmarks.connections", "serve", str(port), name]
    async with await anyio.open_process(command, cwd=ROOT, stderr=None) as process:
        url = f"http://127.0.0.1:{port}/acp"
        try:
            await until_up(f"{url}/health")
            yield Watched(process), url
        finally:
            process.terminate()
            await process.wait()


class Watched:
    """The server's process, seen from outside and by itself."""

    def __init__(self, process: Process) -> None:
        assert process.stdout is not None
        self._process = psutil.Process(process.pid)
        self._told = BufferedByteReceiveStream(process.stdout)

    async def usage(self, *, freed: bool = False) -> dict[str, int]:
        """MB of memory, connections; ``freed`` also threads, tasks and objects, with all that can be given back."""
        held = [item for item in self._process.net_connections("tcp") if item.status == psutil.CONN_ESTABLISHED]
        seen = {"MB": self._process.memory_info().rss // 2**20, "connections": len(held)}
        if not freed:
            return seen
        self._process.send_signal(signal.SIGUSR1)
        told: dict[str, int] = json.loads(await self._told.receive_until(b"\n", 10_000))
        return {**seen, "MB": self._process.memory_info().rss // 2**20, "threads": self._process.num_threads(), **told}

    async def until_left(self, tasks: int) -> dict[str, int]:
        """What it holds when it holds no connection, and no more tasks than so many."""
        with anyio.fail_after(LEFT_WITHIN):
            # Another process is watched: it tells no event.
            while (usage := await self.usage(freed=True))["connections"] or usage["tasks"] > tasks:  # noqa: ASYNC110
                await anyio.sleep(1)
        return usage


async def serve(port: int, name: str) -> None:
    endpoint = AcpEndpoint(AgentBuilder(ProbeAgent).build_factory(), EndpointOptions(max_connections=10 * COUNT))
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(tell_when_asked)
        if name == "uvicorn":
            config = uvicorn.Config(EndpointApplication(endpoint), port=port, log_level="warning", ws_max_size=2**27)
            await uvicorn.Server(config).serve()
        else:
            async with AcpListenerHost(endpoint, ListenerOptions(port=port)) as host:
                await host.termination()
        tasks.cancel_scope.cancel()


async def tell_when_asked() -> None:
    """Free what can be freed at each SIGUSR1, and say what is left."""
    with anyio.open_signal_receiver(signal.SIGUSR1) as asked:
        async for _ in asked:
            gc.collect()
            with suppress(OSError, AttributeError):  # only this C library has it
                ctypes.CDLL("libc.so.6").malloc_trim(0)
            told = {"tasks": len(asyncio.all_tasks()), "objects": len(gc.get_objects())}
            print(json.dumps(told), flush=True)


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


async def run(count: int, name: str) -> int:
    """Three times on the same server: what a later round adds to what is left would be a leak."""
    faults = 0
    async with server(name) as (watched, url):
        async with http_wire(url) as wire, peer_on(wire) as peer:  # what is imported for the first one stays
            await peer.initialize()
        await anyio.sleep(1)
        before = await watched.usage(freed=True)
        print(f"{name}, before:", before, flush=True)
        for _ in range(ROUNDS):
            tally = Tally(count)
            await one_round(url, tally, watched)
            report(tally)
            faults += len(tally.faults)
            print("after:", await watched.until_left(before["tasks"]), flush=True)
    return 1 if faults else 0


async def one_round(url: str, tally: Tally, watched: Watched) -> None:
    at_once, everybody = anyio.Semaphore(AT_ONCE), anyio.Event()
    async with anyio.create_task_group() as tasks:
        for number in range(tally.expected):
            tasks.start_soon(one_turn, url, number, tally, at_once, everybody)
        with anyio.fail_after(600):
            await tally.all_open.wait()
        print("all open:", await watched.usage(), flush=True)
        everybody.set()


def report(tally: Tally) -> None:
    turns = sorted(tally.turns)
    median, slow = turns[len(turns) // 2], turns[len(turns) * 99 // 100]
    print(f"turns {len(turns)}, faults {len(tally.faults)}, median {median * 1e3:.0f} ms, 99 % {slow * 1e3:.0f} ms")
    print(*tally.faults[:10], sep="\n", end="")


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["serve", port, name]:
            anyio.run(serve, int(port), name)
        case [count, name]:
            sys.exit(anyio.run(run, int(count), name))
        case _:
            sys.exit(anyio.run(run, int(sys.argv[1]) if sys.argv[1:] else COUNT, "hypercorn"))
