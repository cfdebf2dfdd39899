"""The core's own command line: a target is a module, or an agent in a module."""

from argparse import ArgumentParser, Namespace
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

import acp_integration
from acp_integration.assembly import AgentBuilder
from acp_integration.cli.program import Served
from acp_integration.configuration.presence import anything_set
from acp_integration.cli.loading import load_agent, project_directory
from acp_integration.options import RuntimeOptions


class CoreProgram:
    """Serves an `@acp_agent` class or function that lives in no application."""

    name: Final = "python -m acp_integration"

    def add_arguments(self, command: ArgumentParser) -> None:
        """The core serves what is named."""
        command.add_argument("target", metavar="TARGET", help="the agent: module:Name, or a module that defines one")

    @asynccontextmanager
    async def open(self, options: Namespace) -> AsyncIterator[Served]:
        """Import the target and build it."""
        agent = load_agent(options.target)
        builder = AgentBuilder(agent, load_settings(files=[project_directory(agent)]))
        yield Served(builder.build_factory(), builder.options)


def load_settings(mapping: Mapping[str, Any] | None = None, files: Any = ()) -> Any:
    """The agent's settings; None if nothing is set, which saves the import of the settings library."""
    if not anything_set(mapping, files=files):
        return None
    return acp_integration.AcpAgentSettings.load(mapping, files=files)
