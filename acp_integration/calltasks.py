"""The tasks in which the handlers of one connection run."""

import asyncio
import logging
from collections.abc import Coroutine
from typing import Any

logger = logging.getLogger(__name__)


class CallTasks:
    """Owns the task of each call until it ends; unlike a task group it can leave one behind that refuses to.

    Of the standard library, which makes tasks at a fifth of the cost; each call has a scope of its own.
    """

    def __init__(self) -> None:
        self._tasks: set[asyncio.Task[None]] = set()

    def start(self, call: Coroutine[Any, Any, None], name: str) -> None:
        """Run a call."""
        self._tasks.add(asyncio.create_task(self._run(call), name=name))

    async def end(self, seconds: float) -> None:
        """Return when all tasks have ended, or when that took so many seconds although they were cancelled."""
        if not self._tasks:
            return
        _, left = await asyncio.wait(tuple(self._tasks), timeout=seconds)
        for task in left:
            logger.error("A %s handler refuses to end although it was cancelled: left it behind", task.get_name())

    async def _run(self, call: Coroutine[Any, Any, None]) -> None:
        # A callback at the end of the task would cost one more pass of the loop for each call.
        task = asyncio.current_task()
        assert task is not None
        try:
            await call
        except Exception:  # the last frame of a task: nobody else would ever see it
            logger.exception("A %s call failed", task.get_name())
        finally:
            self._tasks.discard(task)
