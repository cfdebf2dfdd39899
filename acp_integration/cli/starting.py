"""The start of what a target lives in: imported where Ctrl-C can end it, opened on a loop, never slow in silence."""

from argparse import Namespace
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager

from acp_integration.cli.program import Program, Served
from acp_integration.patience import Patience


class Start:
    """One start of a program's target.

    Args:
        program: whose target it is.
        options: the command line.
    """

    def __init__(self, program: Program, options: Namespace) -> None:
        self._program = program
        self._options = options
        self._until_open = ExitStack()

    def load(self) -> "Start":
        """Import the target, before any loop runs: what blocks a loop cannot be interrupted."""
        with ExitStack() as stack:
            stack.enter_context(Patience(f"{self._program.name} {self._options.command}", "starting", "started"))
            self._program.load(self._options)
            self._until_open = stack.pop_all()
        return self

    @asynccontextmanager
    async def open(self) -> AsyncIterator[Served]:
        """Start what the target lives in, and stop it at the end."""
        async with AsyncExitStack() as stack:
            with self._until_open:
                served = await stack.enter_async_context(self._program.open(self._options))
            yield served
