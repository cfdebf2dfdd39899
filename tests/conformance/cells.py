"""Every way in which this package itself serves an agent."""

import sys
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import httpx2
import uvicorn

from acp_integration.assembly import AgentBuilder
from acp_integration.endpoint import AcpEndpoint, EndpointApplication
from acp_integration.hosts import AcpListenerHost
from acp_integration.options import ListenerOptions
from acp_integration.testing.conformance import Cell
from examples.agents import ProbeAgent

REPO_ROOT = Path(__file__).resolve().parents[2]
SERVED = "tests.endpoint.served_app:app"


def endpoint() -> AcpEndpoint:
    return AcpEndpoint(AgentBuilder(ProbeAgent).build_factory())


@asynccontextmanager
async def in_memory() -> AsyncIterator[Any]:
    yield ProbeAgent


@asynccontextmanager
async def as_process() -> AsyncIterator[Sequence[str]]:
    yield [sys.executable, "-m", "acp_integration", "stdio", "--app-dir", str(REPO_ROOT), "examples.agents:ProbeAgent"]


@asynccontextmanager
async def under_uvicorn(app: Any = None) -> AsyncIterator[str]:
    """Any ASGI application under uvicorn, in this process."""
    config = uvicorn.Config(app or EndpointApplication(endpoint()), port=0, log_level="warning", ws_max_size=2**27)
    server = uvicorn.Server(config)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(server.serve)
        with anyio.fail_after(20):
            while not server.started:
                await anyio.sleep(0.005)
        yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}/acp"
        server.should_exit = True


@asynccontextmanager
async def under_listener() -> AsyncIterator[str]:
    async with AcpListenerHost(endpoint(), ListenerOptions(port=0)) as host:
        yield f"http://127.0.0.1:{host.port()}/acp"


def as_server(*command: str) -> Callable[[], AbstractAsyncContextManager[str]]:
    """A server as a process of its own; ``{port}`` in its command becomes a free port."""

    @asynccontextmanager
    async def start() -> AsyncIterator[str]:
        port = await free_port()
        arguments = [part.format(port=port) for part in command]
        async with await anyio.open_process(
            [sys.executable, "-m", *arguments], cwd=REPO_ROOT, stdout=None, stderr=None
        ) as process:
            try:
                await until_up(f"http://127.0.0.1:{port}/acp/health")
                yield f"http://127.0.0.1:{port}/acp"
            finally:
                process.terminate()
                with anyio.move_on_after(10, shield=True):
                    await process.wait()

    return start


async def free_port() -> int:
    listener = await anyio.create_tcp_listener(local_host="127.0.0.1")
    async with listener:
        return int(listener.extra(anyio.abc.SocketAttribute.local_port))


async def until_up(url: str) -> None:
    async with httpx2.AsyncClient(trust_env=False) as client:
        with anyio.fail_after(30):
            while True:
                try:
                    await client.get(url)
                    return
                except httpx2.TransportError:
                    await anyio.sleep(0.05)


granian = as_server("granian", "--interface", "asgi", "--port", "{port}", SERVED)
workers = as_server("uvicorn", "--workers", "3", "--port", "{port}", SERVED)
gunicorn_workers = as_server(
    "gunicorn",
    "-w",
    "3",
    "-k",
    "uvicorn_worker.UvicornWorker",
    "-b",
    "127.0.0.1:{port}",
    "--log-level",
    "warning",
    SERVED,
)
daphne = as_server("daphne", "-p", "{port}", SERVED)

CELLS = [
    Cell(name="memory", transport="memory", host=in_memory),
    Cell(name="stdio", transport="stdio", host=as_process),
    Cell(name="uvicorn-http", transport="http", host=under_uvicorn),
    Cell(name="uvicorn-websocket", transport="websocket", host=under_uvicorn),
    Cell(name="hypercorn-http", transport="http", host=under_listener),
    Cell(name="hypercorn-http2", transport="http", host=under_listener, http2=True),
    Cell(name="hypercorn-websocket", transport="websocket", host=under_listener),
    Cell(
        name="hypercorn-http2-websocket",
        transport="websocket",
        host=under_listener,
        http2=True,
        impossible="no WebSocket client for Python speaks HTTP/2 (RFC 8441)",
    ),
    Cell(name="uvicorn-3-workers", transport="http", host=workers, scattered=True),
    Cell(name="gunicorn-3-workers", transport="http", host=gunicorn_workers, scattered=True, smoke=True),
    Cell(name="granian-http", transport="http", host=granian, smoke=True),
    Cell(name="granian-websocket", transport="websocket", host=granian, smoke=True),
    Cell(name="daphne-http", transport="http", host=daphne, smoke=True),
    Cell(name="daphne-websocket", transport="websocket", host=daphne, smoke=True),
]
