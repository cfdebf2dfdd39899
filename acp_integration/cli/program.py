"""What differs between the command lines of the core and of a framework: how a target becomes a served agent."""

from argparse import ArgumentParser, Namespace
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Protocol

from acp_integration.assembly import AgentFactory
from acp_integration.caller import LOCAL, Caller
from acp_integration.options import RuntimeOptions


@dataclass(frozen=True, slots=True)
class Served:
    """An agent whose application is started, so that connections can be made.

    Attributes:
        factory: makes a runtime for each connection.
        options: what bounds them.
        caller: on whose behalf the agent acts on a local connection.
    """

    factory: AgentFactory
    options: RuntimeOptions
    caller: Caller = LOCAL


class Program(Protocol):
    """One command line: the core's, or a framework's on top of the same commands."""

    @property
    def name(self) -> str:
        """How the command line is called, for its help."""
        ...

    def add_arguments(self, command: ArgumentParser) -> None:
        """Add what says which agent is meant to a command: a TARGET, or whatever stands in its place."""
        ...

    def open(self, options: Namespace) -> AbstractAsyncContextManager[Served]:
        """Start what the target lives in, and stop it at the end."""
        ...
