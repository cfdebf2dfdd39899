"""Running a command that a person may interrupt: gently at first where that means something, then for good."""

import asyncio
import signal
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import Any

import anyio

from acp_integration.errors import AcpError


class Interruption:
    """What SIGINT and SIGTERM do to a command: they end it, but for the first signal where something gentler is set."""

    def __init__(self) -> None:
        self.scope = anyio.CancelScope()
        self.signal: signal.Signals | None = None
        self._gently: Callable[[], object] | None = None

    def arrive(self, number: signal.Signals) -> None:
        """A signal has come."""
        self.signal = number
        gently, self._gently = self._gently, None
        if gently is None:
            self.scope.cancel()
        else:
            gently()

    @contextmanager
    def gently(self, action: Callable[[], object]) -> Iterator[None]:
        """Within the block, the first signal calls the action and ends nothing."""
        self._gently = action
        try:
            yield
        finally:
            self._gently = None


def run_interruptibly(command: Callable[[Interruption], Awaitable[int]]) -> int:
    """Run an async command; returns its exit code, or 128 and the number of the signal that ended it."""
    with asyncio.Runner() as runner:
        return runner.run(_run(command))


async def _run(command: Callable[[Interruption], Awaitable[int]]) -> int:
    interruption = Interruption()
    code: int | None = None
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, interruption.arrive, number)
    with interruption.scope:
        try:
            code = await command(interruption)
        except* AcpError as group:
            raise _first(group) from None
    return 128 + (interruption.signal or 0) if code is None else code


def _first(group: BaseExceptionGroup[Any]) -> BaseException:
    error: BaseException = group
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error
