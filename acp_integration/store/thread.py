"""The one thread on which the tables of a durable store are used."""

import asyncio
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from typing import Final, ParamSpec, TypeVar

from acp_integration.store.tables import Change, Tables

P = ParamSpec("P")
T = TypeVar("T")

MOST_CHANGES: Final = 256
"""Changes of one commit, so that no session waits long for the others."""


class StoreThread:
    """Runs what blocks, in order, and writes all changes that wait in one commit; it ends with its store."""

    def __init__(self, tables: Tables) -> None:
        self.tables = tables
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="acp-session-store")
        self._waiting: deque[tuple[Change, Future[bool]]] = deque()

    async def run(self, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run a function of the tables behind everything that was asked before."""
        return await asyncio.get_running_loop().run_in_executor(self._pool, partial(function, *args, **kwargs))

    def write(self, change: Change) -> "Future[bool]":
        """Write a change; the result is False if its holder holds the session no more."""
        written: Future[bool] = Future()
        self._waiting.append((change, written))
        self._pool.submit(_write_waiting, self.tables, self._waiting)
        return written


def _write_waiting(tables: Tables, waiting: deque[tuple[Change, "Future[bool]"]]) -> None:
    batch = [waiting.popleft() for _ in range(min(len(waiting), MOST_CHANGES))]
    if not batch:
        return  # an earlier commit took it along
    try:
        results = tables.write([change for change, _ in batch])
    except Exception as error:  # noqa: BLE001  # it belongs to whoever waits for each change
        for _, written in batch:
            written.set_exception(error)
    else:
        for (_, written), result in zip(batch, results, strict=True):
            written.set_result(result)
