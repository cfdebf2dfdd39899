"""One thread for all blocking calls of a turn, for libraries that keep what they open by thread."""

import asyncio
import logging
from collections.abc import Callable
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from functools import partial
from queue import SimpleQueue
from typing import Final, ParamSpec, TypeVar

import anyio

from acp_integration.execution import SLOW_START_SECONDS

T = TypeVar("T")
P = ParamSpec("P")

logger = logging.getLogger(__name__)

CLOSING_SECONDS: Final = 5.0
"""How long the end of a turn waits for what its calls left open on the thread."""
ALL_TAKEN: Final = "A turn waits for a thread: all are taken, acp.agent.sync-threads sets how many there are"


class TurnThread(Executor):
    """Runs the calls of one turn in order on one thread of a pool, from the first call to the end of the turn.

    Args:
        pool: where the thread comes from; with none free, the calls wait and the log says so.
        at_end: called on the thread behind the last call, to close what the calls left open there.
        impatience: what the log says of calls that wait for a thread.
    """

    def __init__(self, pool: ThreadPoolExecutor, at_end: Callable[[], None], impatience: str = ALL_TAKEN) -> None:
        self._pool = pool
        self._at_end = at_end
        self._words = impatience
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
            self._impatience = asyncio.get_running_loop().call_later(SLOW_START_SECONDS, self._say_if_waiting)
        return future

    async def end(self) -> None:
        """Give the thread back once `at_end` has run, without waiting for a call that was abandoned."""
        if self._impatience is not None:
            self._impatience.cancel()
        self._calls.put(None)
        if self._work is None or self._work.cancel() or self._busy:
            return
        with anyio.move_on_after(CLOSING_SECONDS, shield=True):
            await asyncio.wrap_future(self._work)

    def _serve(self) -> None:
        for call in iter(self._calls.get, None):
            call()
        self._at_end()

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
            logger.warning(self._words)
