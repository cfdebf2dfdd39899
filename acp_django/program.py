"""The core's commands for a Django project, which needs no target: it serves one agent."""

import os
import sys
from argparse import SUPPRESS, ArgumentParser, Namespace
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Final

from asgiref.sync import ThreadSensitiveContext, sync_to_async

from acp_django import conf
from acp_django.auth import caller_for, user_named
from acp_django.executor import close_connections
from acp_django.faults import project_errors
from acp_django.project import SETTINGS, loading, set_up
from acp_django.serving import serving
from acp_integration.caller import LOCAL, Caller
from acp_integration.cli.main import main
from acp_integration.cli.program import Served
from acp_integration.configuration import project_directory
from acp_integration.entry import EXIT_USAGE
from acp_integration.errors import ConfigurationError
from acp_integration.transports.guard import StandardStreams

if TYPE_CHECKING:
    from acp_integration.settings import AcpClientSettings

_DJANGOS_OWN: Final = ("--settings", "--pythonpath", "--verbosity", "-v")
_DJANGOS_SWITCHES: Final = ("--traceback", "--no-color", "--force-color", "--skip-checks")


class DjangoProgram:
    """Serves the agent of the project whose settings are in force."""

    example_target: Final = ""

    def __init__(self, name: str) -> None:
        self.name: Final = name

    def add_arguments(self, command: ArgumentParser) -> None:
        """What a management command takes besides the core's options."""
        command.add_argument("--user", metavar="NAME", help="the user of the project for whom the agent acts")
        self.add_client_arguments(command)

    def add_client_arguments(self, command: ArgumentParser) -> None:
        """What Django lets stand on every command line."""
        for name in _DJANGOS_OWN:
            command.add_argument(name, help=SUPPRESS)
        for name in _DJANGOS_SWITCHES:
            command.add_argument(name, action="store_true", help=SUPPRESS)

    def clients(self, options: Namespace) -> "Mapping[str, AcpClientSettings]":  # noqa: ARG002  # the project's
        """Those of `settings.ACP`, of the environment and of the project's files."""
        return conf.clients()

    def stdio_words(self, options: Namespace) -> Sequence[str]:
        """Where the project is and what it is called; the working directory plays no part."""
        module = os.environ[SETTINGS]
        user = [] if options.user is None else ["--user", options.user]
        return ["acp_django", "stdio", "--app-dir", str(project_directory(module)), "--settings", module, *user]

    def load(self, options: Namespace) -> None:  # noqa: ARG002  # the project is set up already
        """Put the agent together, before any loop runs."""
        if not conf.host_options().enabled:
            raise ConfigurationError("acp.agent.enabled=false: the agent is not to be served")
        serving()

    @asynccontextmanager
    async def open(self, options: Namespace) -> AsyncIterator[Served]:
        """Say for whom the agent acts; the end waits for the receivers of signals."""
        self.load(options)
        caller = LOCAL if options.user is None else await _acting(options.user)
        agent = serving()
        yield Served(agent.factory, agent.builder.options, caller, agent.builder, *conf.loaded())
        await agent.signals.settled()


def start(arguments: Sequence[str], streams: StandardStreams | None) -> int:
    """Set the project up and run one command; returns the exit code."""
    name = "python -m acp_django"
    try:
        with loading(name):
            set_up(arguments)
    except ConfigurationError as error:
        print(f"{name}: {error}", file=sys.stderr)
        return EXIT_USAGE
    except ModuleNotFoundError as error:
        if not f"{os.environ[SETTINGS]}.".startswith(f"{error.name}."):
            raise
        print(f"{name}: There is no module {os.environ[SETTINGS]}, which was to hold the settings", file=sys.stderr)
        return EXIT_USAGE
    return run(name, arguments, streams)


def run(name: str, arguments: Sequence[str], streams: StandardStreams | None = None) -> int:
    """Run one command of a project that is set up; returns the exit code.

    Args:
        name: how the command line is called.
        arguments: the words behind it, the first naming the command.
        streams: standard input and output, if they were taken for the protocol already.
    """
    errors = [] if "--skip-checks" in arguments else project_errors()
    sys.stderr.writelines(f"{error}\n" for error in errors)
    return EXIT_USAGE if errors else main(DjangoProgram(name), arguments, streams)


async def _acting(name: str) -> Caller:
    async with ThreadSensitiveContext():
        user = await sync_to_async(user_named)(name)
        await sync_to_async(close_connections)()
    if user is None:
        raise ConfigurationError(f"There is no user {name!r} (--user)")
    return caller_for(user)
