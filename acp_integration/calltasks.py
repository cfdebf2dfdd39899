"""The tasks in which the handlers of one connection run."""

import asyncio
import logging
from collections.abc import Callable, Coroutine, Iterator
from typing import Any, Generic, TypeVar

logger = logging.getLogger(__name__)

Call = TypeVar("Call")


class CallTasks(Generic[Call]):
    """Owns the task of each call until it ends; unlike a task group it can leave one behind that refuses to.

    Of the standard library, which makes tasks at a fifth of the cost; each call has a scope of its own.

    Args:
        handle: what is run for each call.
    """

    def __init__(self, handle: Callable[[Call], Coroutine[Any, Any, None]]) -> None:
        self._handle = handle
        self._tasks: dict[Call, asyncio.Task[None]] = {}

    def __len__(self) -> int:
        return len(self._tasks)

    def __iter__(self) -> Iterator[Call]:
        return iter(tuple(self._tasks))

    def start(self, call: Call, name: str) -> None:
        """Run a call."""
        task = asyncio.get_running_loop().create_task(self._run(call), name=name)
        if not task.done():  # it is where the application's tasks start eagerly
            self._tasks[call] = task

    async def end(self, seconds: float) -> None:
        """Return when all tasks have ended, or when that took so many seconds although they were cancelled."""
        if not self._tasks:
            return
        _, left = await asyncio.wait(tuple(self._tasks.values()), timeout=seconds)
        for task in left:
            logger.error("A %s handler refuses to end although it was cancelled: left it behind", task.get_name())

    async def _run(self, call: Call) -> None:
        # A callback at the end of the task would cost one more pass of the loop for each call.
        try:
            await self._handle(call)
        except Exception:  # the last frame of a task: nobody else would ever see it
            task = asyncio.current_task()
            logger.exception("A %s call failed", task.get_name() if task is not None else "")
        finally:
            self._tasks.pop(call, None)
