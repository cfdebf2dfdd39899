"""How each server says that it shuts down, so that open streams end before the server waits for them.

A server waits for its open connections before it runs the shutdown of its applications, so an application that keeps
streams open must be told earlier. Each way here adds to what the server does, on this one server's objects or in front
of its signal handlers, and is taken back at the end. A server that is not found is no error: its lifespan tells, late.
"""

import asyncio
import logging
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any, Final, Protocol

logger = logging.getLogger(__name__)

_SIGNALS: Final = (signal.SIGTERM, signal.SIGINT, signal.SIGQUIT)
_LOOKS: Final = 3


class _Tap(Protocol):
    def restore(self) -> None:
        """Take it back."""
        ...


class ShutdownTaps:
    """Calls `begin_shutdown` when the server starts to shut down, however that comes about.

    Args:
        begin_shutdown: called from signal handlers and on the loop, perhaps several times.
    """

    def __init__(self, begin_shutdown: Callable[[], None]) -> None:
        self._begin = begin_shutdown
        self._taps: list[_Tap] = []
        self._looks_left = _LOOKS

    def install(self) -> None:
        """Stand in front of the signal handlers; call it on the loop, when the server has its own in place."""
        if threading.current_thread() is threading.main_thread():
            self._taps += [SignalTap(number, self._begin) for number in _SIGNALS if callable(signal.getsignal(number))]

    def look_again(self) -> None:
        """Look for the server among the running tasks, unless it was found or looked for often enough."""
        if self._looks_left == 0:
            return
        self._looks_left -= 1
        found = next(_servers(), None)
        if found is None:
            logger.debug("No server was found that says by itself when it shuts down")
        else:
            self._looks_left = 0
            self._taps.append(CallTap(*found, self._begin))

    def restore(self) -> None:
        """Take everything back that is still in place."""
        while self._taps:
            self._taps.pop().restore()


class SignalTap:
    """A handler in front of the one that a signal has."""

    def __init__(self, number: signal.Signals, begin: Callable[[], None]) -> None:
        self._number = number
        self._begin: Callable[[], None] | None = begin
        self._before: Any = signal.getsignal(number)
        self._ours = self._handle
        signal.signal(number, self._ours)

    def _handle(self, number: int, frame: FrameType | None) -> None:
        if self._begin is not None:
            self._begin()
        self._before(number, frame)

    def restore(self) -> None:
        """Put the handler before ours back; where another one stands in front of ours by now, only pass signals on."""
        self._begin = None
        if signal.getsignal(self._number) == self._ours and threading.current_thread() is threading.main_thread():
            signal.signal(self._number, self._before)


class CallTap:
    """A coroutine function of one object, preceded by ours."""

    def __init__(self, owner: Any, name: str, begin: Callable[[], None]) -> None:
        self._owner = owner
        self._name = name
        original = getattr(owner, name)

        async def preceded(*arguments: Any, **named: Any) -> Any:
            begin()
            return await original(*arguments, **named)

        self._ours = preceded
        setattr(owner, name, preceded)

    def restore(self) -> None:
        """Give the object its own method back."""
        if vars(self._owner).get(self._name) is self._ours:
            delattr(self._owner, self._name)


def _servers() -> Iterator[tuple[Any, str]]:
    """The objects of running servers whose named method starts the shutdown."""
    uvicorn = getattr(sys.modules.get("uvicorn.server"), "Server", None)
    hypercorn = getattr(sys.modules.get("hypercorn.asyncio.worker_context"), "WorkerContext", None)
    if uvicorn is None and hypercorn is None:
        return
    for frame in _frames():
        names = frame.f_locals
        if uvicorn is not None and isinstance(names.get("self"), uvicorn):
            yield names["self"], "shutdown"
        elif hypercorn is not None and isinstance(names.get("context"), hypercorn):
            yield names["context"].terminated, "set"


def _frames() -> Iterator[FrameType]:
    """The frames of every task on this loop, from the outermost call to the one that waits."""
    for task in asyncio.all_tasks():
        waiting: Any = task.get_coro()
        while waiting is not None:
            frame = getattr(waiting, "cr_frame", None)
            if frame is not None:
                yield frame
            waiting = getattr(waiting, "cr_await", None)
