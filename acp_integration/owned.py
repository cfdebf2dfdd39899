"""One coroutine in a task of its own, so that it can be started in one task and stopped from another."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from contextvars import Context, ContextVar
from typing import Final

import anyio

logger = logging.getLogger(__name__)

_owner: Final[ContextVar["OwnedTask | None"]] = ContextVar("acp_owned_task", default=None)


class OwnedTask:
    """A task that belongs to one object rather than to the task that happened to start it.

    It starts in an empty context: nothing of the request during which it was started reaches what it runs.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._scope: anyio.CancelScope | None = None
        self._ended = anyio.Event()
        self._task: asyncio.Task[None] | None = None

    def start(self, main: Callable[[], Awaitable[None]]) -> None:
        """Run the coroutine on the running loop; at most once."""
        self._scope = anyio.CancelScope()
        self._task = asyncio.create_task(self._run(main), name=self._name, context=Context())
        self._task.add_done_callback(lambda _: self._ended.set())

    @property
    def inside(self) -> bool:
        """Whether the caller runs in this task or in one it started, so that waiting for its end would never end."""
        return _owner.get() is self

    async def wait(self) -> None:
        """Wait until the task has ended, in whatever way."""
        if self._task is not None:
            await self._ended.wait()

    def cancel(self) -> None:
        """Ask the task to end; what it does in a shielded scope is still done."""
        if self._scope is not None:
            self._scope.cancel()

    async def stop(self) -> None:
        """Cancel the task and wait for its end, or only cancel it when called from inside."""
        self.cancel()
        if not self.inside:
            await self.wait()

    async def _run(self, main: Callable[[], Awaitable[None]]) -> None:
        _owner.set(self)
        try:
            with self._scope or anyio.CancelScope():
                await main()
        except Exception:  # the last frame of a task: nobody else would ever see it
            logger.exception("%s failed", self._name)
