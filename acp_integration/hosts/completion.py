"""What a host promises: awaited on any loop, waited for on any thread, settled once."""

import asyncio
import threading
from collections.abc import Generator
from concurrent.futures import Future
from typing import Any


class Completion(Future[None]):
    """Ends when something has ended; ``await`` it on a loop, or call ``result(timeout)`` on a thread.

    Nobody who waits can cancel it: giving up waiting ends only the waiting.
    """

    def __init__(self) -> None:
        super().__init__()
        self._settling = Once()
        self.set_running_or_notify_cancel()

    def complete(self) -> None:
        """End it; later calls change nothing."""
        if self._settling.claim():
            self.set_result(None)

    def fail(self, error: BaseException) -> None:
        """End it with an error; later calls change nothing."""
        if self._settling.claim():
            self.set_exception(error)

    def __await__(self) -> Generator[Any, None, None]:
        yield from asyncio.wrap_future(self).__await__()


class Once:
    """Something that one caller alone may do, whichever thread or signal handler it comes from."""

    __slots__ = ("_token",)

    def __init__(self) -> None:
        self._token = [self]

    def claim(self) -> bool:
        """True for the first caller, without a lock that an interrupted caller could hold."""
        try:
            self._token.pop()
        except IndexError:
            return False
        return True

    @property
    def claimed(self) -> bool:
        """Whether somebody has claimed it."""
        return not self._token


def hold(completion: Completion, name: str) -> threading.Thread:
    """Keep the process alive until something has ended, however it ends."""
    thread = threading.Thread(target=completion.exception, name=name, daemon=False)
    thread.start()
    return thread
