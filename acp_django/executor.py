"""Where handlers run in a Django project: every turn has one thread, so the ORM and `atomic` work as in a view."""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from contextlib import asynccontextmanager
from functools import partial
from queue import SimpleQueue
from typing import Final, ParamSpec, TypeVar

import anyio
from asgiref.sync import AsyncToSync, ThreadSensitiveContext, sync_to_async
from django.db import connections

T = TypeVar("T")
P = ParamSpec("P")

logger = logging.getLogger(__name__)

_PATIENCE: Final = 1.0  # seconds a turn waits for a thread before the log says so
_CLOSING: Final = 5.0  # seconds the end of a turn waits for its connections to close


class DjangoExecutor:
    """Gives every turn a thread-sensitive context of its own, and closes its database connections at its end.

    Args:
        threads: how many turns may hold a thread at a time; the next waits until one ends.
    """

    def __init__(self, threads: int) -> None:
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix="acp-turn")

    async def run(self, function: Callable[[], T]) -> T:
        """Run a blocking function on the turn's thread; a cancelled caller returns at once."""
        return await sync_to_async(function)()

    @asynccontextmanager
    async def scope(self) -> AsyncIterator[None]:
        """One turn, whose sync handlers and async ORM calls share a thread that is taken at the first of them."""
        if _thread_is_lent():
            yield
            return
        thread = TurnThread(self._pool)
        try:
            async with ThreadSensitiveContext(executor=thread):
                yield
        finally:
            await thread.end()


def _thread_is_lent() -> bool:
    """Whether sync code above this loop waits and runs our sync calls on its own thread, as in a TestCase.

    Its connections, perhaps in an open transaction, are the ones to use, and are not ours to close.
    """
    lent = getattr(AsyncToSync.executors, "current", None)
    return lent is not None or asyncio.get_running_loop() in AsyncToSync.loop_thread_executors


class TurnThread(Executor):
    """Runs the calls of one turn in order on one thread of the pool, from the first call to the end of the turn."""

    def __init__(self, pool: ThreadPoolExecutor) -> None:
        self._pool = pool
        self._calls: SimpleQueue[Callable[[], None] | None] = SimpleQueue()
        self._busy = False
        self._work: Future[None] | None = None
        self._impatience: asyncio.TimerHandle | None = None

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        """Queue a call; the first one asks the pool for a thread."""
        future: Future[T] = Future()
        self._calls.put(partial(self._settle, future, partial(fn, *args, **kwargs)))
        if self._work is None:
            self._work = self._pool.submit(self._serve)
            self._impatience = asyncio.get_running_loop().call_later(_PATIENCE, self._say_if_waiting)
        return future

    async def end(self) -> None:
        """Give the thread back with its connections closed, without waiting for a call that was abandoned."""
        if self._impatience is not None:
            self._impatience.cancel()
        self._calls.put(None)
        if self._work is None or self._work.cancel() or self._busy:
            return
        with anyio.move_on_after(_CLOSING, shield=True):
            await asyncio.wrap_future(self._work)

    def _serve(self) -> None:
        for call in iter(self._calls.get, None):
            call()
        close_connections()

    def _settle(self, future: Future[T], call: Callable[[], T]) -> None:
        if not future.set_running_or_notify_cancel():
            return
        self._busy = True
        try:
            result = call()
        except BaseException as error:  # noqa: BLE001  # it belongs to whoever awaits the future
            self._busy = False
            future.set_exception(error)
        else:
            self._busy = False
            future.set_result(result)

    def _say_if_waiting(self) -> None:
        if self._work is not None and not (self._work.running() or self._work.done()):
            logger.warning("A turn waits for a thread: all are taken, acp.agent.sync-threads sets how many there are")


def close_connections() -> None:
    """Close this thread's database connections, except those inside a transaction, which somebody else owns."""
    for connection in connections.all(initialized_only=True):
        if not connection.in_atomic_block:
            try:
                connection.close()
            except Exception:
                logger.exception("Closing the database connection %r failed", connection.alias)
