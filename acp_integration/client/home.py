"""Where a client lives: the loop that opened it, and the way there from other loops and threads."""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from concurrent.futures import Future
from functools import partial
from typing import ParamSpec, TypeVar

from acp_integration.errors import ClientError, ConnectionClosed

T = TypeVar("T")
P = ParamSpec("P")


class Home:
    """The event loop one client belongs to; the first call decides which."""

    def __init__(self) -> None:
        self.loop: asyncio.AbstractEventLoop | None = None

    async def run(self, function: Callable[P, Awaitable[T]], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run a coroutine function at home, and wait for it here; cancelling the wait cancels it there."""
        here = asyncio.get_running_loop()
        if self.loop is None:
            self.loop = here
        if self.loop is here:
            return await function(*args, **kwargs)
        return await asyncio.wrap_future(_submit(self.loop, partial(function, *args, **kwargs)))

    def run_blocking(self, function: Callable[P, Awaitable[T]], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run a coroutine function at home, and block this thread until it has ended.

        Raises:
            ClientError: when called on the thread of the loop, which would then wait for itself.
        """
        if self.loop is None:
            raise ClientError("The client is not connected yet, so there is no loop to run on")
        if _running_loop() is self.loop:
            raise ClientError(
                "A blocking call on the client's own event loop would never end: use the async client there"
            )
        return _submit(self.loop, partial(function, *args, **kwargs)).result()

    def call_soon(self, callback: Callable[[], object]) -> None:
        """Call back at home, from any thread; nothing happens when the loop is closed."""
        if self.loop is not None:
            with contextlib.suppress(RuntimeError):
                self.loop.call_soon_threadsafe(callback)


def _submit(loop: asyncio.AbstractEventLoop, function: Callable[[], Awaitable[T]]) -> Future[T]:
    if loop.is_closed():
        raise ConnectionClosed("The event loop that the client lived on is closed: open a new client")
    return asyncio.run_coroutine_threadsafe(_call(function), loop)


async def _call(function: Callable[[], Awaitable[T]]) -> T:
    return await function()


def _running_loop() -> asyncio.AbstractEventLoop | None:
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None
