"""A call whose values are lent to it: they stay alive while it runs, and see how it ended.

This is how a framework's dependency injection surrounds a handler without sharing its cancellation.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from contextvars import Context, copy_context
from typing import Any, Final, Generic, TypeVar

import anyio
from anyio.abc import TaskStatus

from acp_integration.errors import TurnCancelled

T = TypeVar("T")
Proceed = Callable[[Mapping[str, Any]], Awaitable[T]]

CLEANUP_LIMIT: Final = 5.0
"""How many seconds a lender has to clean up after a cancelled call."""


class Loan(Generic[T]):
    """Runs a call in the caller's own task, and its lender in a task beside it.

    A cancel must reach the call at once, but the lender only as the way the call ended: what it opened would otherwise
    be cancelled in the middle of closing. The context variables that the lender set are seen by the call.

    Args:
        proceed: the call; it gets the values and its result is that of `run`.

    Attributes:
        refused: what the lender raised in place of values, or while it cleaned up; a lender that swallows its own
            error may put it here.
    """

    def __init__(self, proceed: Proceed[T]) -> None:
        self.refused: Exception | None = None
        self._proceed = proceed
        self._values: Mapping[str, Any] | None = None
        self._context: Context | None = None
        self._failure: Exception | None = None
        self._result: T
        self._found = anyio.Event()
        self._ended = anyio.Event()
        self._task: asyncio.Task[Any] | None = None
        self._limit: asyncio.TimerHandle | None = None

    async def run(self, lender: Callable[[], Awaitable[object]]) -> T:
        """Let the lender call `lend`, run the call, and wait for the lender's end.

        Raises:
            Exception: what the call raised, unless the lender made another error of it or refused.
        """
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._run_lender, lender)
            try:
                await self._found.wait()
                await self._call()
            except BaseException:
                self._give_up()
                raise
        if self.refused is not None:
            raise self.refused
        return self._result

    async def lend(self, values: Mapping[str, Any]) -> None:
        """Hand the values over, and wait until the call has ended; called once, by the lender.

        Raises:
            Exception: what the call raised; TurnCancelled when it was cancelled.
        """
        self._values, self._context = values, copy_context()
        self._found.set()
        await self._ended.wait()
        if self._failure is not None:
            raise self._failure

    async def _run_lender(self, lender: Callable[[], Awaitable[object]]) -> None:
        if self._ended.is_set():  # given up before it began
            return
        self._task = asyncio.current_task()
        try:
            with anyio.CancelScope(shield=True):
                await lender()
        except Exception as error:  # noqa: BLE001  # whatever the lender raised is the outcome of the call
            self.refused = error
        finally:
            self._found.set()
            if self._limit is not None:
                self._limit.cancel()

    async def _call(self) -> None:
        if self._values is None or self._context is None:
            return
        for variable, value in self._context.items():
            if variable.get(None) is not value:
                variable.set(value)
        try:
            self._result = await self._proceed(self._values)
        except Exception as error:  # noqa: BLE001  # raised again where the lender sees it
            self._failure = error
        self._ended.set()

    def _give_up(self) -> None:
        """The call was cancelled: let the lender clean up, for a while."""
        self._failure = TurnCancelled()
        self._ended.set()
        if self._task is None:
            return
        # Edge-triggered on purpose: it passes the shields behind which frameworks close dependencies.
        self._limit = asyncio.get_running_loop().call_later(CLEANUP_LIMIT, self._task.cancel)
        if self._values is None:
            self._task.cancel()


@asynccontextmanager
async def held(run: Callable[[Proceed[None]], Awaitable[None]]) -> AsyncIterator[Mapping[str, Any]]:
    """The values that would be lent to a call, lent to a block instead.

    Args:
        run: runs a call with its values, and raises what the call raises.
    """
    done = anyio.Event()
    failures: list[Exception] = []

    async def hold(*, task_status: TaskStatus[Mapping[str, Any]]) -> None:
        async def proceed(values: Mapping[str, Any]) -> None:
            task_status.started(values)
            await done.wait()
            for failure in failures:
                raise failure

        await run(proceed)

    try:
        async with anyio.create_task_group() as tasks:
            values = await tasks.start(hold)
            try:
                yield values
            except Exception as failure:  # noqa: BLE001  # raised again where the lender sees it
                failures.append(failure)
            done.set()
    except ExceptionGroup as group:
        raise group.exceptions[0] from None  # the error itself, as without a task beside it
