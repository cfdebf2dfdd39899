"""Whether a handler call was cancelled, and how its handler is told: once."""

import asyncio
import logging
from collections.abc import Callable
from enum import Enum
from typing import Final

import anyio

logger = logging.getLogger(__name__)


class Cause(Enum):
    """Why a call was cancelled."""

    SESSION_CANCEL = "session/cancel"
    SESSION_CLOSE = "session/close"
    CANCEL_REQUEST = "$/cancel_request"
    DURATION = "the maximum duration"
    CONNECTION = "the end of the connection"


_NONE: Final[frozenset[Cause]] = frozenset()


class Cancellation:
    """The latched cancel signal of one call.

    `is_cancelled` never goes back and can be read on any thread; the methods are called on the connection's event loop.
    An async handler is told by one CancelledError; asyncio's own edge-triggered `Task.cancel` carries it, because a
    level-triggered scope would cancel every clean-up await again.
    """

    __slots__ = ("_callbacks", "_delivered", "_event", "_task", "causes", "delivers", "is_cancelled")

    def __init__(self) -> None:
        self.causes: frozenset[Cause] = _NONE
        self.delivers = True
        self._delivered = False
        self.is_cancelled = False
        self._event: anyio.Event | None = None
        self._task: asyncio.Task[object] | None = None
        self._callbacks: list[Callable[[], object]] | None = None

    def cancel(self, cause: Cause) -> bool:
        """Latch the signal and tell whoever waits for it; True for the first cancel."""
        self.causes |= {cause}
        if self.is_cancelled:
            return False
        self.is_cancelled = True
        if self._event is not None:
            self._event.set()
        callbacks, self._callbacks = self._callbacks, None
        for callback in callbacks or ():
            _call_safely(callback)
        # Behind whatever the callbacks woke: a withdrawn request returns to its handler before that is cancelled.
        asyncio.get_running_loop().call_soon(self._deliver)
        return True

    def on_cancel(self, callback: Callable[[], object]) -> Callable[[], None]:
        """Call back once on cancel, at once if that was before; returns what takes the callback back."""
        if self.is_cancelled:
            _call_safely(callback)
            return _nothing
        if self._callbacks is None:
            self._callbacks = []
        self._callbacks.append(callback)
        return lambda: self._take_back(callback)

    async def wait(self) -> None:
        """Return when the call is cancelled."""
        if self.is_cancelled:
            return
        if self._event is None:
            self._event = anyio.Event()
        await self._event.wait()

    def attach(self, task: asyncio.Task[object]) -> None:
        """Name the task that runs the handler."""
        self._task = task

    def detach(self) -> None:
        """The handler has ended: nothing is delivered from now on."""
        self._task = None

    def absorb(self) -> bool:
        """Whether the CancelledError that ended the handler was ours; its task then goes on uncancelled."""
        if not self._delivered:
            return False
        task = asyncio.current_task()
        assert task is not None
        task.uncancel()
        return True

    def _take_back(self, callback: Callable[[], object]) -> None:
        if self._callbacks is not None and callback in self._callbacks:
            self._callbacks.remove(callback)

    def _deliver(self) -> None:
        task, self._task = self._task, None
        if task is not None and self.delivers:
            self._delivered = task.cancel()


def _call_safely(callback: Callable[[], object]) -> None:
    try:
        callback()
    except Exception:  # a user's callback must not keep the others from being told
        logger.warning("A cancel callback failed", exc_info=True)


def _nothing() -> None:
    return None
