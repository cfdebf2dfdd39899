"""What each connection costs a worker: ``python -m benchmarks.growth``; the figures of ``docs/deployment.md``.

Idle means a session whose streams are read and say nothing; streaming means 20 updates a second. Processor time is that
of the worker, and where a request goes through another worker, or Redis, that of the other one too.
"""

import sys
import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from functools import partial

import anyio
import psutil
import uvicorn

from acp_integration import PromptContext, acp_agent, on
from acp_integration.assembly import AgentBuilder
from acp_integration.endpoint import AcpEndpoint, EndpointApplication
from acp_integration.options import BackplaneOptions, EndpointOptions
from acp_integration.testing.conformance.network import http_wire, websocket_wire
from acp_integration.testing.conformance.peer import RawPeer, peer_on
from benchmarks.connections import ROOT, until_up
from benchmarks.paper import Costs, on_paper
from benchmarks.workers import redis
from tests.conformance.cells import free_port

CONNECTIONS = 300
STREAMING = 40
SECONDS = 8
EACH_SECOND = 20


@acp_agent
class Ticker:
    """Says something twenty times a second."""

    @on.prompt
    async def tick(self, turn: PromptContext) -> None:
        """As many times as it is told."""
        for _ in range(int(turn.text)):
            await turn.send_message("some twenty letters.")
            await anyio.sleep(1 / EACH_SECOND)


def serve(port: int, meeting: str) -> None:
    """One worker."""
    workers = BackplaneOptions(url=meeting, key="benchmark")
    options = EndpointOptions(workers=workers, max_connections=10 * CONNECTIONS)
    app = EndpointApplication(AcpEndpoint(AgentBuilder(Ticker).build_factory(), options))
    uvicorn.run(app, port=port, log_level="warning")


@asynccontextmanager
async def worker(meeting: str) -> AsyncIterator[tuple[psutil.Process, str]]:
    """A worker as a process of its own, and its URL."""
    port = await free_port()
    words = [sys.executable, "-m", "benchmarks.growth", "serve", str(port), meeting]
    async with await anyio.open_process(words, cwd=ROOT, stdout=None, stderr=None) as process:
        try:
            await until_up(f"http://127.0.0.1:{port}/acp/health")
            yield psutil.Process(process.pid), f"http://127.0.0.1:{port}/acp"
        finally:
            process.terminate()
            await process.wait()


async def talking(stack: AsyncExitStack, url: str, reached: str | None = None) -> tuple[RawPeer, str]:
    """A new connection with a session, which goes on through another worker if one is named."""
    if reached is None and url.startswith("ws"):
        wire = await stack.enter_async_context(websocket_wire(url.replace("ws", "http", 1)))
    else:
        wire = await stack.enter_async_context(http_wire(url))
    peer = await stack.enter_async_context(peer_on(wire))
    await peer.initialize()
    if reached is not None:
        wire.url = reached
    return peer, await peer.new_session()


async def idle(name: str, url: str, process: psutil.Process) -> tuple[float, float]:
    """KB of memory, and microseconds of processor time a second, of a connection that says nothing."""
    async with AsyncExitStack() as stack:
        await talking(stack, url)
        before = process.memory_info().rss
        for _ in range(CONNECTIONS):
            await talking(stack, url)
        kilobytes = (process.memory_info().rss - before) / CONNECTIONS / 1024
        with spent(process) as seconds:
            await anyio.sleep(2 * SECONDS)
        micro = seconds[0] / CONNECTIONS / (2 * SECONDS) * 1e6
    print(f"{name}: {kilobytes:.0f} KB a connection, {micro:.0f} us of processor time a second", flush=True)
    return kilobytes, micro


async def streaming(name: str, url: str, reached: str | None, *processes: psutil.Process) -> list[float]:
    """Microseconds of processor time of an update on its way out, in every process that it passes."""
    async with AsyncExitStack() as stack:
        peers = [await talking(stack, url, reached) for _ in range(STREAMING)]
        with spent(*processes) as seconds:
            async with anyio.create_task_group() as tasks:
                for peer, session in peers:
                    tasks.start_soon(peer.prompt, session, str(SECONDS * EACH_SECOND))
        updates = STREAMING * SECONDS * EACH_SECOND
        each = [one / updates * 1e6 for one in seconds]
        for peer, session in peers:
            assert len(peer.updates(session)) == SECONDS * EACH_SECOND
    print(f"{name}: {', '.join(f'{one:.0f} us' for one in each)} of processor time an update", flush=True)
    return each


@contextmanager
def spent(*processes: psutil.Process) -> Iterator[list[float]]:
    """The processor seconds that each process spends inside the context."""
    before = [sum(process.cpu_times()[:2]) for process in processes]
    seconds: list[float] = []
    yield seconds
    seconds += [sum(process.cpu_times()[:2]) - start for process, start in zip(processes, before, strict=True)]


async def run() -> None:
    """Everything, one after the other; then what many connections would take."""
    async with worker("memory:") as (process, url):
        socket = url.replace("http", "ws", 1)
        http, web_socket = await idle("idle, HTTP", url, process), await idle("idle, WebSocket", socket, process)
        here = await streaming("streaming, HTTP", url, None, process)
        on_socket = await streaming("streaming, WebSocket", socket, None, process)
    with tempfile.TemporaryDirectory(prefix="acp-") as directory:
        across = await hop("streaming through another worker (owner, other)", f"unix:{directory}")
    async with redis() as meeting:
        server = next(one for one in psutil.Process().children() if "redis-server" in one.name())
        owner, other, store = await hop("streaming over Redis (owner, other, Redis)", meeting, server)
    costs = [
        Costs("WebSocket", *web_socket, sum(on_socket)),
        Costs("HTTP, at its worker", *http, sum(here)),
        Costs("HTTP, through another worker of the host", *http, sum(across)),
        Costs("HTTP, through another host", *http, owner + other, store),
    ]
    print("", *on_paper(costs, EACH_SECOND), sep="\n")


async def hop(name: str, meeting: str, *more: psutil.Process) -> list[float]:
    """What an update costs that passes another worker on its way out."""
    async with AsyncExitStack() as stack:
        serving = partial(worker, meeting)
        (owner, url), (other, reached) = [await stack.enter_async_context(serving()) for _ in range(2)]
        return await streaming(name, url, reached, owner, other, *more)


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["serve", port, meeting]:
            serve(int(port), meeting)
        case _:
            anyio.run(run)
