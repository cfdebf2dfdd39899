"""The core's own command line: a target is a module, or an agent in a module."""

from argparse import ArgumentParser, Namespace
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import acp_integration
from acp_integration.assembly import AgentBuilder
from acp_integration.cli.editor import app_dir_words
from acp_integration.cli.main import main
from acp_integration.cli.program import Served
from acp_integration.configuration import anything_set, project_directory
from acp_integration.discovery import resolve_agent
from acp_integration.errors import ConfigurationError
from acp_integration.transports.guard import StandardStreams

if TYPE_CHECKING:
    from acp_integration.settings import AcpClientSettings

_CLIENTS: Final = "acp_integration.hosts.clients"


class CoreProgram:
    """Serves an `@acp_agent` class or function that lives in no application."""

    name: Final = "python -m acp_integration"
    example_target: Final = "agents:MyAgent"

    def add_arguments(self, command: ArgumentParser) -> None:
        """The core serves what is named."""
        command.add_argument("target", metavar="TARGET", help="the agent: module:Name, or a module that defines one")

    def stdio_words(self, options: Namespace) -> Sequence[str]:
        """The same target, from wherever the process is started."""
        return ["acp_integration", "stdio", options.target, *app_dir_words(options)]

    def load(self, options: Namespace) -> None:
        """Import the module that is named."""
        resolve_agent(options.target)

    @asynccontextmanager
    async def open(self, options: Namespace) -> AsyncIterator[Served]:
        """Import the target and build it."""
        candidate = resolve_agent(options.target)
        project = project_directory(candidate.agent_class.__module__)
        settings, origins = load_settings(files=[project] if project is not None else [])
        if settings is not None and settings.enabled is False:
            raise ConfigurationError("acp.agent.enabled=false: the agent is not to be served")
        builder = AgentBuilder(candidate, settings)
        yield Served(builder.build_factory(), builder.options, builder=builder, settings=settings, origins=origins)

    def add_client_arguments(self, command: ArgumentParser) -> None:
        """The clients are in the environment, and in files beside ``--app-dir``."""

    def clients(self, options: Namespace) -> "Mapping[str, AcpClientSettings]":
        """The clients that are configured."""
        return configured_clients(files=[] if options.app_dir is None else [Path(options.app_dir)])


def start(arguments: Sequence[str], streams: StandardStreams | None) -> int:
    """Run the core's command line."""
    return main(CoreProgram(), arguments, streams)


def load_settings(
    mapping: Mapping[str, Any] | None = None, files: Sequence[Path] = ()
) -> tuple[Any, Mapping[str, str]]:
    """The agent's settings and where each was set; None if nothing is, which saves importing their classes."""
    if not anything_set(mapping, files=files):
        return None, {}
    loaded = acp_integration.AcpAgentSettings.load_with_origins(mapping, files=files)
    return loaded.settings, loaded.origins


def configured_clients(
    mapping: Mapping[str, Any] | None = None, files: Sequence[Path] = ()
) -> Mapping[str, "AcpClientSettings"]:
    """The settings of each client that is configured, read with what a process that serves does not load."""
    found: Mapping[str, AcpClientSettings] = import_module(_CLIENTS).client_settings(mapping, files=files)
    return found
