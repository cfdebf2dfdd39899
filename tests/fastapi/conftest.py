"""A real uvicorn on a loopback port, in the test's own loop."""

import socket
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import anyio
import httpx2
import pytest
import uvicorn

Serve = Callable[..., Coroutine[Any, Any, str]]


class Server(uvicorn.Server):
    """A uvicorn that tells when it is up."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.up = anyio.Event()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self.up.set()


@asynccontextmanager
async def running(app: Any, **options: Any) -> AsyncIterator[str]:
    """Serve an application until the block ends; gives its address."""
    listener = socket.create_server(("127.0.0.1", 0))
    config = uvicorn.Config(app, log_config=None, ws="websockets-sansio", **options)
    server = Server(config)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(server.serve, [listener])
        with anyio.fail_after(10):
            await server.up.wait()
        yield f"127.0.0.1:{listener.getsockname()[1]}"
        server.should_exit = True


@pytest.fixture
async def serve() -> AsyncIterator[Serve]:
    """``await serve(app)`` gives the ``host:port`` the application is served on, until the test ends."""
    async with AsyncExitStack() as servers:

        async def start(app: Any, **options: Any) -> str:
            return await servers.enter_async_context(running(app, **options))

        yield start


@pytest.fixture
async def http() -> AsyncIterator[httpx2.AsyncClient]:
    """An HTTP client that follows no redirect and trusts no proxy of the environment."""
    async with httpx2.AsyncClient(trust_env=False, timeout=10) as client:
        yield client
