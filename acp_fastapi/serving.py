"""One agent and its clients while one application runs."""

import inspect
from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from contextvars import ContextVar
from typing import Any, Final

import anyio
from fastapi import FastAPI
from starlette.routing import BaseRoute

from acp_fastapi.declaration import Declaration
from acp_fastapi.gate import is_guarded
from acp_fastapi.resolver import Resolver
from acp_integration.assembly import AgentBuilder, AgentFactory
from acp_integration.binding.annotations import parameters_of
from acp_integration.discovery import AgentCandidate
from acp_integration.endpoint.asgi import AcpEndpoint
from acp_integration.extensions import extensions_of
from acp_integration.hosts.clients import SharedClients
from acp_integration.transports.selection import require_served

BY_COMMAND: Final[ContextVar[bool]] = ContextVar("acp_fastapi_by_command", default=False)
"""Whether a command, and no web server, started the application."""


class Serving:
    """What exists while an application runs: the agent's instance, its endpoint, the clients.

    Attributes:
        owner: the `AcpFastAPI` it belongs to.
        clients: the clients that can be injected.
        state: what the lifespan of the application yielded, where no request carries it.
        factory: makes the agent of a connection; None if no agent is served.
        endpoint: serves it over HTTP and WebSocket.
    """

    def __init__(self, owner: object, declaration: Declaration, app: FastAPI) -> None:
        self.owner = owner
        self.declaration = declaration
        plugins = extensions_of(declaration.plugins, declaration.settings.host_options().plugins)
        self.clients = SharedClients(declaration.clients, declaration.customizers, plugins)
        self.state: dict[str, Any] = {}
        self.builder: AgentBuilder | None = None
        self.factory: AgentFactory | None = None
        self.endpoint: AcpEndpoint | None = None
        self._app = app
        self._guarded: bool | None = None

    @asynccontextmanager
    async def running(self) -> AsyncIterator["Serving"]:
        """Build the agent, and end the endpoint, what the agent was built with, and the clients, in this order."""
        async with AsyncExitStack() as stack:
            stack.push_async_callback(self.clients.aclose)
            candidate = self.declaration.candidate
            if candidate is not None:
                if not BY_COMMAND.get():
                    require_served(self.declaration.settings, "http")
                await self._start_agent(candidate, stack)
            yield self

    def guarded(self, route: BaseRoute) -> bool:
        """Whether dependencies of the application stand before a gate."""
        if self._guarded is None:
            self._guarded = is_guarded(route, self._app.routes)
        return self._guarded

    async def _start_agent(self, candidate: AgentCandidate, stack: AsyncExitStack) -> None:
        settings = self.declaration.settings
        resolver = Resolver(self._app, self.state)
        agent = await stack.enter_async_context(_constructed(candidate, resolver))
        self.builder = AgentBuilder(agent, settings, plugins=self.declaration.plugins, scope=resolver)
        self.factory = self.builder.build_factory()
        self.endpoint = AcpEndpoint(self.factory, settings=settings, place=candidate.name)
        stack.push_async_callback(_closed, self.endpoint)


def servings(state: Mapping[str, Any]) -> Iterable[Serving]:
    """What the routers of an application started, found in the state their lifespans yielded."""
    return [value for value in state.values() if isinstance(value, Serving)]


async def _closed(endpoint: AcpEndpoint) -> None:
    with anyio.CancelScope(shield=True):
        await endpoint.aclose()


@asynccontextmanager
async def _constructed(candidate: AgentCandidate, resolver: Resolver) -> AsyncIterator[AgentCandidate]:
    """The agent's instance, made once with the dependencies its constructor asks for."""
    agent_class: Any = candidate.agent_class
    made_here = inspect.isclass(agent_class) and candidate.supplier is agent_class
    parameters = parameters_of(agent_class.__init__, agent_class)[1:] if made_here else []
    claimed = [parameter for parameter in parameters if resolver.claims(parameter)]
    if not claimed:
        yield AgentCandidate(
            candidate.name, candidate.agent_class, candidate.supplier
        )  # with an instance of its own: each run of the application makes one
        return
    async with resolver.constructed(agent_class, claimed) as instance:
        yield AgentCandidate(candidate.name, agent_class, lambda: instance)
