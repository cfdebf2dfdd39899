"""Endpoints that are really served, and endpoints that are driven without a server."""

from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import Any

import anyio
import httpx2
import pytest
import uvicorn

from acp_integration.assembly import AgentBuilder
from acp_integration.endpoint import AcpEndpoint, EndpointApplication
from acp_integration.options import EndpointOptions
from examples.agents import ProbeAgent
from tests.endpoint.driver import Driver, driving


@dataclass
class Site:
    """An endpoint on a real server."""

    endpoint: AcpEndpoint
    server: uvicorn.Server
    http: httpx2.AsyncClient
    port: int

    @property
    def socket_url(self) -> str:
        return f"ws://127.0.0.1:{self.port}/acp"


def make_endpoint(agent: Any = ProbeAgent, factory: Any = None, **options: Any) -> AcpEndpoint:
    return AcpEndpoint(factory or AgentBuilder(agent).build_factory(), EndpointOptions(**options))


@pytest.fixture
async def serve() -> AsyncIterator[Callable[..., Any]]:
    """``site = await serve(agent, **options)``: uvicorn with the endpoint on a free port of the loopback interface."""
    async with AsyncExitStack() as stack:

        async def start(agent: Any = ProbeAgent, factory: Any = None, app: Any = None, **options: Any) -> Site:
            endpoint = make_endpoint(agent, factory, **options)
            config = uvicorn.Config(
                app or EndpointApplication(endpoint), port=0, log_level="warning", ws_max_size=2**27, lifespan="on"
            )
            server = uvicorn.Server(config)
            tasks = await stack.enter_async_context(anyio.create_task_group())
            stack.callback(setattr, server, "should_exit", True)
            tasks.start_soon(server.serve)
            with anyio.fail_after(10):
                while not server.started:
                    await anyio.sleep(0.005)
            port = server.servers[0].sockets[0].getsockname()[1]
            limits = httpx2.Limits(max_connections=None)
            client = httpx2.AsyncClient(base_url=f"http://127.0.0.1:{port}", timeout=20, limits=limits)
            return Site(endpoint, server, await stack.enter_async_context(client), port)

        yield start


@pytest.fixture
async def drive() -> AsyncIterator[Callable[..., Any]]:
    """``driver = await drive(agent, **options)``: the endpoint driven as ASGI, without a server."""
    async with AsyncExitStack() as stack:

        async def start(agent: Any = ProbeAgent, factory: Any = None, **options: Any) -> Driver:
            endpoint = make_endpoint(agent, factory, **options)
            await stack.enter_async_context(endpoint.running())
            return await stack.enter_async_context(driving(endpoint))

        yield start
