"""One agent and its clients while one application runs."""

import inspect
from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from contextvars import ContextVar
from typing import Any, Final

import anyio
from fastapi import FastAPI
from starlette.routing import BaseRoute

from acp_fastapi.clients import Clients
from acp_fastapi.declaration import Declaration
from acp_fastapi.gate import is_guarded
from acp_fastapi.resolver import Resolver
from acp_integration.assembly import AgentBuilder, AgentFactory
from acp_integration.cli.program import Served
from acp_integration.discovery import AgentCandidate
from acp_integration.endpoint.asgi import AcpEndpoint
from acp_integration.errors import ConfigurationError, DiscoveryError, HandlerError

ON_STDIO: Final[ContextVar[bool]] = ContextVar("acp_fastapi_on_stdio", default=False)
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
        self.clients = Clients(declaration.clients, declaration.customizers)
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
                self._refuse_contradiction()
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
        self.builder = AgentBuilder(agent, settings)
        self.factory = self.builder.build_factory()
        self.endpoint = AcpEndpoint(self.factory, settings=settings)
        stack.push_async_callback(_closed, self.endpoint)

    def served(self) -> Served:
        """The agent for connections that a command makes.

        Raises:
            DiscoveryError: if no agent is served.
        """
        if self.builder is None or self.factory is None:
            raise DiscoveryError("No agent is served: AcpFastAPI has none, or acp.agent.enabled is false")
        declaration = self.declaration
        return Served(
            self.factory,
            self.builder.options,
            builder=self.builder,
            settings=declaration.settings,
            origins=declaration.origins,
        )

    def _refuse_contradiction(self) -> None:
        if self.declaration.settings.serves == "stdio" and not ON_STDIO.get():
            raise ConfigurationError(
                "acp.agent.transport.type=stdio contradicts a web server: remove it, or start the agent with "
                "`python -m acp_fastapi stdio TARGET`"
            )


def servings(state: Mapping[str, Any]) -> Iterable[Serving]:
    """What the routers of an application started, found in the state their lifespans yielded."""
    return [value for value in state.values() if isinstance(value, Serving)]


async def _closed(endpoint: AcpEndpoint) -> None:
    with anyio.CancelScope(shield=True):
        await endpoint.aclose()


@asynccontextmanager
async def _constructed(candidate: AgentCandidate, resolver: Resolver) -> AsyncIterator[AgentCandidate]:
    """The agent's instance, made once with the dependencies its constructor asks for."""
    agent_class = candidate.agent_class
    parameters = _parameters(agent_class) if candidate.supplier is agent_class else []
    claimed = [parameter for parameter in parameters if resolver.claims(parameter)]
    if not claimed:
        yield candidate
        return
    async with resolver.constructed(agent_class, claimed) as instance:
        yield AgentCandidate(candidate.name, agent_class, lambda: instance)


def _parameters(agent_class: Any) -> list[inspect.Parameter]:
    try:
        return list(inspect.signature(agent_class, eval_str=True).parameters.values())
    except NameError as error:
        message = f"The constructor of {agent_class.__qualname__} has an annotation that cannot be resolved: {error}"
        raise HandlerError(message, owner=agent_class.__qualname__, method="__init__") from error
