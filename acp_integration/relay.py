"""Calls that are made one after the other, in order, beside the work of whoever asks for them."""

import logging
from collections import deque
from collections.abc import Awaitable, Callable
from typing import Any, Final

import anyio

from acp_integration.owned import OwnedTask

logger = logging.getLogger(__name__)

MOST: Final = 10_000


class Relay:
    """Takes async calls without waiting; they run in a task that exists only while there are some.

    Args:
        name: what the task is called in logs.
        most: how many calls may wait; more are dropped, and the log says so.
    """

    def __init__(self, name: str, most: int = MOST) -> None:
        self._name = name
        self._most = most
        self._waiting: deque[Callable[[], Awaitable[Any]]] = deque()
        self._task: OwnedTask | None = None

    def soon(self, call: Callable[[], Awaitable[Any]]) -> None:
        """Make a call once those before it have ended; what it raises is logged."""
        if len(self._waiting) >= self._most:
            logger.warning("%s: a call is dropped, because those before it are slower than what happens", self._name)
            return
        self._waiting.append(call)
        if self._task is None:
            self._task = OwnedTask(self._name)
            self._task.start(self._run)

    async def settled(self, seconds: float) -> None:
        """Wait until no call waits any more, for so long at most, also when the caller is being cancelled."""
        if self._task is not None:
            with anyio.move_on_after(seconds, shield=True):
                await self._task.wait()

    async def _run(self) -> None:
        try:
            while self._waiting:
                try:
                    await self._waiting.popleft()()
                except Exception:
                    logger.exception("%s: a call failed", self._name)
        finally:
            self._task = None
