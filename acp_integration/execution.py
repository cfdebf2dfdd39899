"""Where sync handlers run: the seam through which a framework hands over its threads, and the default behind it."""

import asyncio
import contextlib
import logging
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import Final, Protocol, TypeVar

import anyio
import anyio.to_thread
from anyio.lowlevel import RunVar

from acp_integration.options import RuntimeOptions

logger = logging.getLogger(__name__)

T = TypeVar("T")

SLOW_START_SECONDS: Final = 1.0


NOTHING_AROUND: Final[AbstractAsyncContextManager[None]] = contextlib.nullcontext()
"""The scope of an executor that needs none; it can be entered any number of times, and need not be entered at all."""


class HandlerExecutor(Protocol):
    """Runs sync handlers on threads; the runtime never shuts down an executor it was given."""

    async def run(self, function: Callable[[], T]) -> T:
        """Run a blocking function on a thread of its own, with the caller's context variables copied into it.

        Cancelling the caller returns at once and leaves the thread to end by itself.
        """
        ...

    def scope(self) -> AbstractAsyncContextManager[None]:
        """A context entered around every handler call, async ones too, and left before its request is answered."""
        ...


class ThreadLimit:
    """How many threads run handlers at once; a thread its caller left behind counts until it ends."""

    def __init__(self, threads: int = RuntimeOptions().sync_threads) -> None:
        self.threads = threads
        self._limiter: RunVar[anyio.CapacityLimiter] = RunVar("acp_sync_threads")

    @property
    def limiter(self) -> anyio.CapacityLimiter:
        """The limiter of the running event loop."""
        limiter = self._limiter.get(None)
        if limiter is None:
            limiter = anyio.CapacityLimiter(self.threads)
            self._limiter.set(limiter)
        return limiter

    async def acquire(self) -> Callable[[], None]:
        """Wait for a free thread; returns what gives it back, safe to call from any thread of the loop's process."""
        limiter, borrower = self.limiter, object()
        with anyio.move_on_after(SLOW_START_SECONDS) as soon:
            await limiter.acquire_on_behalf_of(borrower)
        if soon.cancelled_caught:
            logger.warning("A sync handler waits for a thread: all %d are busy (sync-threads)", self.threads)
            await limiter.acquire_on_behalf_of(borrower)
        return lambda: limiter.release_on_behalf_of(borrower)


class ThreadExecutor:
    """The default: anyio's worker threads under a limit of our own, never the one the framework's endpoints share."""

    def __init__(self, limit: ThreadLimit | None = None) -> None:
        self._limit = limit or ThreadLimit()

    async def run(self, function: Callable[[], T]) -> T:
        """Run a blocking function on a worker thread; cancelling the caller leaves the thread to end by itself."""
        release = await self._limit.acquire()
        return await run_counted(function, release)

    def scope(self) -> AbstractAsyncContextManager[None]:
        """Nothing surrounds a call."""
        return NOTHING_AROUND


async def run_counted(function: Callable[[], T], release: Callable[[], None]) -> T:
    """Run on a worker thread what holds a place of a limit until the thread itself ends."""
    loop = asyncio.get_running_loop()
    # Whoever takes the only item decides: the thread starts the function, or the abandoning caller forbids it.
    permission = [True]

    def body() -> T:
        try:
            permission.pop()
        except IndexError:
            raise RuntimeError("The caller left before the thread started") from None
        try:
            return function()
        finally:
            with contextlib.suppress(RuntimeError):  # the loop may be closed by the time an abandoned thread ends
                loop.call_soon_threadsafe(release)

    try:
        return await anyio.to_thread.run_sync(body, abandon_on_cancel=True, limiter=anyio.CapacityLimiter(1))
    except BaseException:
        with contextlib.suppress(IndexError):
            permission.pop()
            release()
        raise
