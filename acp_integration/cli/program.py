"""What differs between the command lines of the core and of a framework: how a target becomes a served agent."""

from argparse import ArgumentParser, Namespace
from collections.abc import Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING, Protocol

import msgspec

from acp_integration.assembly import AgentBuilder, AgentFactory
from acp_integration.caller import LOCAL, Caller
from acp_integration.options import RuntimeOptions

if TYPE_CHECKING:
    from acp_integration.settings import AcpAgentSettings, AcpClientSettings


class Served(msgspec.Struct, frozen=True):
    """An agent whose application is started, so that connections can be made.

    Attributes:
        factory: makes a runtime for each connection.
        options: what bounds them.
        caller: on whose behalf the agent acts on a local connection.
        builder: what the factory was built with, for a look at it.
        settings: the agent's settings, or None if nothing is set.
        origins: for each setting that was set, where.
    """

    factory: AgentFactory
    options: RuntimeOptions
    caller: Caller = LOCAL
    builder: AgentBuilder | None = None
    settings: "AcpAgentSettings | None" = None
    origins: Mapping[str, str] = msgspec.field(default_factory=dict)


class Program(Protocol):
    """One command line: the core's, or a framework's on top of the same commands."""

    @property
    def name(self) -> str:
        """How the command line is called, for its help."""
        ...

    @property
    def example_target(self) -> str:
        """What stands for the target in the examples of its help; empty if there is none."""
        ...

    def add_arguments(self, command: ArgumentParser) -> None:
        """Add what says which agent is meant to a command: a TARGET, or whatever stands in its place."""
        ...

    def stdio_words(self, options: Namespace) -> Sequence[str]:
        """The module to run and the words behind it that serve the same agent on standard input and output."""
        ...

    def load(self, options: Namespace) -> None:
        """Import what the target lives in; called before any loop runs, so that Ctrl-C can end it."""
        ...

    def open(self, options: Namespace) -> AbstractAsyncContextManager[Served]:
        """Start what the target lives in, and stop it at the end."""
        ...

    def add_client_arguments(self, command: ArgumentParser) -> None:
        """Add what says whose clients are meant to a command."""
        ...

    def clients(self, options: Namespace) -> "Mapping[str, AcpClientSettings]":
        """The settings of each client by its name; that of ``acp.client`` is named ``default``."""
        ...
