"""Every way in which this package itself serves an agent."""

import itertools
import os
import shutil
import sys
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager, suppress
from pathlib import Path
from subprocess import DEVNULL
from typing import Any
from urllib.parse import urlsplit

import anyio
import httpx2
import uvicorn
from anyio.abc import SocketStream

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


def as_server(
    *command: str, environ: Mapping[str, str] | None = None
) -> Callable[[], AbstractAsyncContextManager[str]]:
    """A server as a process of its own; ``{port}`` in its command becomes a free port."""

    @asynccontextmanager
    async def start() -> AsyncIterator[str]:
        port = await free_port()
        arguments = [part.format(port=port) for part in command]
        async with await anyio.open_process(
            [sys.executable, "-m", *arguments], cwd=REPO_ROOT, stdout=None, stderr=None, env=environ
        ) as process:
            try:
                await until_up(f"http://127.0.0.1:{port}/acp/health")
                yield f"http://127.0.0.1:{port}/acp"
            finally:
                process.terminate()
                with anyio.move_on_after(10, shield=True):
                    await process.wait()

    return start


@asynccontextmanager
async def over_redis() -> AsyncIterator[str]:
    """Two servers that share nothing but Redis, behind what sends each TCP connection to the next of them."""
    port = await free_port()
    words = (shutil.which("redis-server") or "redis-server", "--port", str(port), "--bind", "127.0.0.1", "--save", "")
    async with AsyncExitStack() as stack:
        redis = await stack.enter_async_context(await anyio.open_process(words, stdout=DEVNULL))
        stack.callback(redis.terminate)
        with anyio.fail_after(20):
            while not await listens(port):
                await anyio.sleep(0.02)
        environ = {**os.environ, "ACP_TEST_BACKPLANE": f"redis://127.0.0.1:{port}/0"}
        start = as_server("uvicorn", "--port", "{port}", SERVED, environ=environ)
        upstreams = [await stack.enter_async_context(start()) for _ in range(2)]
        yield await stack.enter_async_context(round_robin(upstreams))


@asynccontextmanager
async def round_robin(upstreams: Sequence[str]) -> AsyncIterator[str]:
    """A proxy in front of ``http://host:port/path``: every TCP connection goes to the next one."""
    ports = itertools.cycle(urlsplit(upstream).port or 0 for upstream in upstreams)

    async def relay(client: SocketStream) -> None:
        async with (
            client,
            await anyio.connect_tcp("127.0.0.1", next(ports)) as upstream,
            anyio.create_task_group() as both,
        ):
            both.start_soon(copy, client, upstream, both.cancel_scope)
            both.start_soon(copy, upstream, client, both.cancel_scope)

    listener = await anyio.create_tcp_listener(local_host="127.0.0.1")
    async with listener, anyio.create_task_group() as tasks:
        tasks.start_soon(listener.serve, relay)
        port = listener.extra(anyio.abc.SocketAttribute.local_port)
        yield f"http://127.0.0.1:{port}{urlsplit(upstreams[0]).path}"
        tasks.cancel_scope.cancel()


async def copy(source: SocketStream, sink: SocketStream, both: anyio.CancelScope) -> None:
    """Everything from one side to the other; the end of either is the end of both."""
    with suppress(anyio.EndOfStream, anyio.BrokenResourceError, anyio.ClosedResourceError):
        while True:
            await sink.send(await source.receive())
    both.cancel()


async def listens(port: int) -> bool:
    try:
        await (await anyio.connect_tcp("127.0.0.1", port)).aclose()
    except OSError:
        return False
    return True


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
    Cell(
        name="redis-2-servers",
        transport="http",
        host=over_redis,
        scattered=True,
        impossible=None if shutil.which("redis-server") else "redis-server is not installed: .ci/run installs it",
    ),
    Cell(name="granian-http", transport="http", host=granian, smoke=True),
    Cell(name="granian-websocket", transport="websocket", host=granian, smoke=True),
    Cell(name="daphne-http", transport="http", host=daphne, smoke=True),
    Cell(name="daphne-websocket", transport="websocket", host=daphne, smoke=True),
]
