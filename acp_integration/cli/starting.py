"""The start of what a target lives in: imported where Ctrl-C can end it, opened on a loop, never slow in silence."""

import sys
import threading
import time
from argparse import Namespace
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Final

from acp_integration.cli.program import Program, Served

SLOW_SECONDS: Final = 2.0


class Start:
    """One start of a program's target. A client may be waiting for it, so a slow one is said on standard error.

    Args:
        program: whose target it is.
        options: the command line.
    """

    def __init__(self, program: Program, options: Namespace) -> None:
        self._program = program
        self._options = options
        self._name = f"{program.name} {options.command}"
        self._began = time.monotonic()
        self._said = False
        self._timer = threading.Timer(SLOW_SECONDS, self._say_slow)
        self._timer.daemon = True

    def load(self) -> "Start":
        """Import the target, before any loop runs: what blocks a loop cannot be interrupted."""
        self._timer.start()
        try:
            self._program.load(self._options)
        except BaseException:
            self._timer.cancel()
            raise
        return self

    @asynccontextmanager
    async def open(self) -> AsyncIterator[Served]:
        """Start what the target lives in, and stop it at the end."""
        async with AsyncExitStack() as stack:
            try:
                served = await stack.enter_async_context(self._program.open(self._options))
            finally:
                self._timer.cancel()
            if self._said:
                self._say(f"started after {time.monotonic() - self._began:.1f} s")
            yield served

    def _say_slow(self) -> None:
        self._said = True
        self._say(f"still starting after {SLOW_SECONDS:g} s; a client that waits may lose patience")

    def _say(self, text: str) -> None:
        print(f"{self._name}: {text}", file=sys.stderr, flush=True)
