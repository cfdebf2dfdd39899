"""The core's commands for an agent that lives in a FastAPI application."""

import inspect
from argparse import ArgumentParser, Namespace
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from types import ModuleType
from typing import Any, Final

from fastapi import FastAPI
from starlette.types import ASGIApp

from acp_fastapi.router import AcpFastAPI
from acp_fastapi.serving import BY_COMMAND, Serving, servings
from acp_integration.cli.editor import app_dir_words
from acp_integration.cli.main import main
from acp_integration.cli.program import Served
from acp_integration.discovery import resolve
from acp_integration.errors import DiscoveryError
from acp_integration.hosts.lifespan import lifespan
from acp_integration.settings.client import AcpClientSettings
from acp_integration.transports.guard import StandardStreams


class FastAPIProgram:
    """Serves the agent of an application, whose lifespan runs around it."""

    name: Final = "python -m acp_fastapi"
    example_target: Final = "main:app"

    def add_arguments(self, command: ArgumentParser) -> None:
        """What names the application."""
        command.add_argument(
            "target", metavar="TARGET", help="the app, as module:app; or an AcpFastAPI, as module:agents"
        )

    def stdio_words(self, options: Namespace) -> Sequence[str]:
        """The same target, from wherever the process is started."""
        return ["acp_fastapi", "stdio", options.target, *app_dir_words(options)]

    def load(self, options: Namespace) -> None:
        """Import the target, which runs no lifespan yet."""
        resolve(options.target)

    @asynccontextmanager
    async def open(self, options: Namespace) -> AsyncIterator[Served]:
        """Start the application, and find the agent in the state its lifespan yields."""
        BY_COMMAND.set(True)
        app, owner = _application(options.target)
        async with lifespan(app) as state:
            serving = _one_of(state, owner, options.target)
            serving.state.update(state)
            yield _served(serving)

    def add_client_arguments(self, command: ArgumentParser) -> None:
        """The clients are those that the module of the target declares, or its project."""
        self.add_arguments(command)

    def clients(self, options: Namespace) -> Mapping[str, AcpClientSettings]:
        """The settings of each client by its name."""
        names = vars(resolve(options.target.partition(":")[0]))
        declared = [value.declaration.clients for value in names.values() if isinstance(value, AcpFastAPI)]
        return {name: settings for clients in declared for name, settings in clients.items()}


def start(arguments: Sequence[str], streams: StandardStreams | None) -> int:
    """Run one command; returns the exit code."""
    return main(FastAPIProgram(), arguments, streams)


def _application(target: str) -> tuple[ASGIApp, AcpFastAPI | None]:
    """The ASGI application a target names; with the one `AcpFastAPI` that is meant, if it names that."""
    found = resolve(target)
    if isinstance(found, ModuleType):
        found = getattr(found, "app", None) or _not_a_target(target)
    if inspect.isfunction(found) and not inspect.iscoroutinefunction(found):
        found = found()
    if isinstance(found, AcpFastAPI):
        return _holder(resolve(target.partition(":")[0]), found), found
    return found if callable(found) and not inspect.isclass(found) else _not_a_target(target), None


def _holder(module: ModuleType, agents: AcpFastAPI) -> ASGIApp:
    """The application in whose module an `AcpFastAPI` stands, if it is the only one there, else one of its own."""
    apps = [value for value in vars(module).values() if isinstance(value, FastAPI)]
    if len(apps) == 1:
        return apps[0]
    app = FastAPI()
    app.include_router(agents.router)
    return app


def _one_of(state: dict[str, Any], owner: AcpFastAPI | None, target: str) -> Serving:
    found = [serving for serving in servings(state) if owner in (None, serving.owner) and serving.factory is not None]
    if len(found) == 1:
        return found[0]
    if found:
        raise DiscoveryError(f"{target} serves {len(found)} agents: name the AcpFastAPI object of one as module:name")
    raise DiscoveryError(
        f"{target} serves no agent: its lifespan started no AcpFastAPI with one. Include the router of an AcpFastAPI "
        "in the application itself, not in one that is mounted, and leave acp.agent.enabled on"
    )


def _served(serving: Serving) -> Served:
    declaration, builder, factory = serving.declaration, serving.builder, serving.factory
    assert builder is not None
    assert factory is not None
    return Served(factory, builder.options, builder=builder, settings=declaration.settings, origins=declaration.origins)


def _not_a_target(target: str) -> Any:
    raise DiscoveryError(
        f"{target} is no ASGI application and no AcpFastAPI: write module:app, or serve an agent "
        "that lives in no application with python -m acp_integration"
    )
