"""One handler call inside the dependencies it asked for."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from contextvars import Context, copy_context
from typing import Any, Final, Generic, TypeVar

import anyio
from starlette.routing import BaseRoute
from starlette.types import ASGIApp, Message, Scope

from acp_fastapi.refusals import as_request_error
from acp_integration.errors import TurnCancelled

T = TypeVar("T")
Proceed = Callable[[Mapping[str, Any]], Awaitable[T]]

RESOLUTION: Final = "acp_fastapi.resolution"
CLEANUP_LIMIT: Final = 5.0
"""How many seconds the dependencies of a cancelled call have to close."""


class Resolution(Generic[T]):
    """Runs a handler in the caller's own task, and its dependencies in a task beside it.

    A cancel must reach the handler at once, but the dependencies only as the way their handler ended: FastAPI's exit
    stacks would otherwise be cancelled in the middle of closing.

    Attributes:
        route: the path operation whose parameters are wanted.
        refused: what FastAPI or a dependency raised in place of values, or while closing.
    """

    def __init__(self, route: BaseRoute, proceed: Proceed[T]) -> None:
        self.route = route
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

    async def run(self, app: ASGIApp, scope: Scope) -> T:
        """Resolve, run the handler, close; the result or the error is the handler's, unless a dependency refused."""
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._resolve, app, scope)
            try:
                await self._found.wait()
                await self._handle()
            except BaseException:
                self._give_up()
                raise
        if self.refused is not None:
            raise as_request_error(self.refused)
        return self._result

    async def lend(self, values: Mapping[str, Any]) -> None:
        """Called by the path operation: hand the values to the handler and keep them alive until it ended."""
        self._values, self._context = values, copy_context()
        self._found.set()
        await self._ended.wait()
        if self._failure is not None:
            raise self._failure

    async def _resolve(self, app: ASGIApp, scope: Scope) -> None:
        if self._ended.is_set():  # given up before it began
            return
        self._task = asyncio.current_task()
        try:
            with anyio.CancelScope(shield=True):
                await app(scope, _no_body, _drop)
        except Exception as error:  # noqa: BLE001  # whatever a dependency raised is the handler's outcome
            self.refused = error
        finally:
            self._found.set()
            if self._limit is not None:
                self._limit.cancel()

    async def _handle(self) -> None:
        if self._values is None or self._context is None:
            return
        for variable, value in self._context.items():
            if variable.get(None) is not value:
                variable.set(value)
        try:
            self._result = await self._proceed(self._values)
        except Exception as error:  # noqa: BLE001  # raised again where the dependencies see it
            self._failure = error
        self._ended.set()

    def _give_up(self) -> None:
        """The call was cancelled: let the dependencies close, for a while."""
        self._failure = TurnCancelled()
        self._ended.set()
        if self._task is None:
            return
        # Edge-triggered on purpose: it passes the shields behind which FastAPI closes dependencies.
        self._limit = asyncio.get_running_loop().call_later(CLEANUP_LIMIT, self._task.cancel)
        if self._values is None:
            self._task.cancel()


async def _no_body() -> Message:
    return {"type": "http.request", "body": b"", "more_body": False}


async def _drop(message: Message) -> None:
    """Nobody reads the response of a path operation that only resolves."""
