"""What the hosts of an endpoint share: one task that serves until it is told to stop."""

import asyncio
import logging
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import ClassVar, Self

from acp_integration.hosts.completion import Completion, Once, hold
from acp_integration.hosts.stopping import stop_within, stop_within_blocking
from acp_integration.owned import OwnedTask

logger = logging.getLogger(__name__)


class ServingHost(ABC):
    """Keeps the contract of `AcpHost` for something that serves until it is stopped, whoever leaves meanwhile."""

    name: ClassVar[str]
    """What the log calls it."""

    stop_timeout: float
    """How many seconds leaving ``async with`` waits for a graceful stop."""

    def __init__(self) -> None:
        self._task = OwnedTask(self.name)
        self._starting, self._stopping, self._holding = Once(), Once(), Once()
        self._started, self._ended = Completion(), Completion()
        self._loop: asyncio.AbstractEventLoop | None = None

    @abstractmethod
    async def _serve(self, started: Callable[[], None]) -> None:
        """Serve until `_begin_stop` was called and everything has ended; say when it has started."""

    @abstractmethod
    def _begin_stop(self) -> None:
        """Let `_serve` end; from any thread, also from a signal, and perhaps before it runs."""

    @abstractmethod
    def _cut(self) -> None:
        """Let `_serve` end at once; from any thread."""

    async def start(self) -> None:
        """Start, and return once it has started; does nothing when called again or after a stop."""
        if self._stopping.claimed:
            return
        if self._starting.claim():
            # A stop reads the loop after its claim, `_run` looks for a claim after the loop is set: one sees the other.
            self._loop = asyncio.get_running_loop()
            self._task.start(self._run)
        await self._started

    def stop_gracefully(self) -> Completion:
        """Ask it to stop, without waiting, from wherever; every call returns the same object."""
        if self._stopping.claim():
            self._begin_stop()
            if self._loop is None:
                self._finish()
        return self._ended

    async def stop(self, timeout: float) -> None:
        """Stop gracefully for at most so many seconds, then at once; at once also when the caller is cancelled."""
        await stop_within(timeout, self.stop_gracefully(), self._close_now, self.name)

    def stop_blocking(self, timeout: float) -> None:
        """The same for a thread other than the loop's, and for ``atexit``."""
        stop_within_blocking(timeout, self.stop_gracefully(), self._close_now, self.name)

    def termination(self) -> Completion:
        """What ends when it serves no more."""
        return self._ended

    def port(self) -> int | None:
        """The port that is bound; None before the start and for what has none."""
        return None

    def hold_until_termination(self) -> None:
        """Keep the process alive until the end with one thread of its own; returns at once."""
        if self._holding.claim():
            hold(self._ended, "acp-agent-await")

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.stop(self.stop_timeout)

    async def _run(self) -> None:
        try:
            if not self._stopping.claimed:
                await self._serve(self._has_started)
        except Exception as error:
            if self._started.done():
                raise
            self._started.fail(error)  # which `start` raises
        finally:
            self._finish()

    def _has_started(self) -> None:
        self._started.complete()
        if self._stopping.claimed:
            self._begin_stop()

    def _finish(self) -> None:
        self._started.complete()
        self._ended.complete()

    def _close_now(self) -> None:
        self._cut()
        if self._loop is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._task.cancel)
