"""Where handlers run in a Django project: every turn has one thread, so the ORM and `atomic` work as in a view."""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from typing import TypeVar

from asgiref.sync import AsyncToSync, ThreadSensitiveContext, sync_to_async
from django.db import connections

from acp_integration.turn_thread import ALL_TAKEN, TurnThread

T = TypeVar("T")

logger = logging.getLogger(__name__)


class DjangoExecutor:
    """Gives every turn a thread-sensitive context of its own, and closes its database connections at its end.

    Args:
        threads: how many turns may hold a thread at a time; the next waits until one ends.
        impatience: what the log says of one that waits for long.
    """

    def __init__(self, threads: int, impatience: str = ALL_TAKEN) -> None:
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix="acp-turn")
        self._impatience = impatience

    async def run(self, function: Callable[[], T]) -> T:
        """Run a blocking function on the turn's thread; a cancelled caller returns at once."""
        return await sync_to_async(function)()

    @asynccontextmanager
    async def scope(self) -> AsyncIterator[None]:
        """One turn, whose sync handlers and async ORM calls share a thread that is taken at the first of them."""
        if _thread_is_lent():
            yield
            return
        thread = TurnThread(self._pool, close_connections, self._impatience)
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


def close_connections() -> None:
    """Close this thread's database connections, except those inside a transaction, which somebody else owns."""
    for connection in connections.all(initialized_only=True):
        if not connection.in_atomic_block:
            try:
                connection.close()
            except Exception:
                logger.exception("Closing the database connection %r failed", connection.alias)
