"""`AcpFastAPI`: an agent, or a client, for an application that it never touches."""

import inspect
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import cached_property
from typing import Annotated, Any
from weakref import WeakKeyDictionary

from fastapi import APIRouter, Depends, FastAPI, Request

from acp_fastapi.declaration import Clients, Declaration
from acp_fastapi.gate import Admission, GateRoute
from acp_fastapi.lazy import LazyServing
from acp_fastapi.serving import Serving
from acp_integration.caller import Caller, principal_of
from acp_integration.client.builder import ClientBuilder
from acp_integration.discovery import Target
from acp_integration.endpoint import CALLER_KEY
from acp_integration.settings.agent import AcpAgentSettings

METHODS = ("GET", "POST", "DELETE")


class AcpFastAPI:
    """Serves one agent of an application over Streamable HTTP and WebSocket, and opens the clients it injects.

    Include its `router`: the agent is then served at the router's path, behind the dependencies of the application,
    the router and the inclusion, and lives as long as the application's lifespan.

    Args:
        agent: a class or function marked with ``@acp_agent``, or an instance; None to serve none.
        user: a dependency that says who is calling; its value is ``turn.user``.
        principal: makes the string that a user's connections belong to. By default the user itself if it is a string
            or an integer, else its ``id``.
        settings: the agent's settings; by default those of the environment and of the project's files.
        client: the settings of the client that is injected, or those of several by name; by default likewise.
        customizers: called with the builder of each client, to add handlers.
        plugins: plugins beside those the settings name.
        path: where the agent is served; by default what the settings say, ``/acp`` if they say nothing.
        discover: modules, or their names, in which the one agent is looked for if none is given.
    """

    def __init__(  # noqa: PLR0913  # each is a keyword that one application in ten needs
        self,
        agent: Any = None,
        *,
        user: Callable[..., Any] | None = None,
        principal: Callable[[Any], str | int] | None = None,
        settings: AcpAgentSettings | None = None,
        client: Clients | None = None,
        customizers: Sequence[Callable[[ClientBuilder], object]] = (),
        plugins: Sequence[Any] = (),
        path: str | None = None,
        discover: Sequence[Target] = (),
    ) -> None:
        self._user = user
        self._principal = principal
        self._path = path
        self._lazily: WeakKeyDictionary[FastAPI, LazyServing] = WeakKeyDictionary()
        self.declaration = Declaration(agent, discover, settings, client, customizers, plugins, _calling_module())

    @cached_property
    def router(self) -> APIRouter:
        """What the application includes; made when it is first asked for, which reads the settings.

        Raises:
            ConfigurationError: if the settings hold what cannot be used.
            DiscoveryError: if there is not exactly one agent.
        """
        router = APIRouter(route_class=GateRoute, lifespan=self._lifespan)
        if self.declaration.candidate is not None:
            path = (self._path or self.declaration.settings.endpoint_options().path).rstrip("/")
            for spelling in filter(None, (path, f"{path}/")):
                router.add_api_route(spelling, self._gate(), methods=list(METHODS), include_in_schema=False)
        return router

    def _gate(self) -> Callable[..., Any]:
        user_dependency = Depends(self._user or _nobody)

        async def acp(request: Request, user: Annotated[Any, user_dependency]) -> Admission:
            serving = await self._serving(request.scope)
            assert serving.endpoint is not None
            guarded = user is not None or serving.guarded(request.scope["route"])
            principal = principal_of(user, self._principal)
            return Admission(serving.endpoint, {CALLER_KEY: Caller(user, principal, guarded=guarded)})

        return acp

    @property
    def _key(self) -> str:
        return f"acp_fastapi_{id(self):x}"

    @asynccontextmanager
    async def _lifespan(self, app: FastAPI) -> AsyncIterator[Mapping[str, Any]]:
        async with Serving(self, self.declaration, app).running() as serving:
            yield {self._key: serving}

    async def _serving(self, scope: Mapping[str, Any]) -> Serving:
        running = scope["state"].get(self._key)
        if isinstance(running, Serving):
            return running
        app = scope["app"]
        lazy = self._lazily.get(app)
        if lazy is None or not lazy.usable:
            lazy = self._lazily[app] = LazyServing(Serving(self, self.declaration, app))
        await lazy.start()
        return lazy.serving


async def _nobody() -> None:
    """Nobody is calling, as far as the application says."""


def _calling_module() -> str:
    """The module that makes an `AcpFastAPI`: its settings files are looked for beside that project."""
    frame = inspect.currentframe()
    caller = frame.f_back.f_back if frame and frame.f_back else None
    return str(caller.f_globals.get("__name__", "")) if caller else ""
