"""A user's function with the plan of its arguments and of its answer."""

import functools
import inspect
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator, Mapping
from contextlib import AbstractAsyncContextManager
from types import CoroutineType
from typing import Any

from acp_integration.binding.arguments import ArgumentPlan
from acp_integration.binding.faults import HandlerSite
from acp_integration.binding.handler import AnsweringHandler
from acp_integration.binding.parameters import Kind
from acp_integration.binding.resolvers import ReturnValueHandler
from acp_integration.context.ambient import encoded, enter_turn
from acp_integration.context.invocation import Invocation
from acp_integration.context.turn import PromptContext
from acp_integration.execution import NOTHING_AROUND, HandlerExecutor
from acp_integration.handlers import HandlerMark
from acp_integration.returns import is_prompt_result, prompt_result, send_item, settled, to_json
from acp_integration.turns import Call
from acp_integration.wire import methods


class UserHandler(AnsweringHandler):
    """Calls a user's function: an async one on the loop, a sync one in the executor."""

    def __init__(  # noqa: PLR0913  # one argument for each part of the plan
        self,
        site: HandlerSite,
        mark: HandlerMark,
        function: Callable[..., Any],
        plan: ArgumentPlan,
        executor: HandlerExecutor,
        *,
        sync: bool,
        returns: ReturnValueHandler | None = None,
    ) -> None:
        super().__init__(mark.method, site.qualified)
        self.uses_sdk = Kind.SDK_MODEL in plan.kinds
        self.notification = mark.notification or mark.method == methods.SESSION_CANCEL
        self.accepts_notifications = self.notification or mark.method.startswith("mcp/")
        self.kind = "sync" if sync else "async"
        self.delivers_cancel = not sync and not mark.cooperative
        self._function = function
        self._plan = plan
        self._executor = executor
        self._sync = sync
        self._returns = returns
        self._is_turn = mark.method == methods.SESSION_PROMPT
        # A handler that was given the session to be has nothing more to say of it.
        self._may_be_silent = mark.method == methods.INITIALIZE or Kind.SESSION in plan.kinds

    def __call__(self, call: Call) -> Awaitable[bytes]:
        """Run the handler within its executor's scope and make its answer."""
        invocation = Invocation(call, self.name)
        scope = self._executor.scope()
        return self._run(invocation) if scope is NOTHING_AROUND else self._run_within(scope, invocation)

    async def _run_within(self, scope: AbstractAsyncContextManager[None], invocation: Invocation) -> bytes:
        async with scope:
            return await self._run(invocation)

    # No coroutine around a coroutine where nothing is awaited between them: each costs at every step of the handler.
    def _run(self, invocation: Invocation) -> Awaitable[bytes]:
        if self._is_turn:
            enter_turn(invocation.turn)
        if self._plan.scoped is None:
            return self.respond(invocation)
        return self._plan.scoped(invocation.call, functools.partial(self._respond_with, invocation))

    async def _respond_with(self, invocation: Invocation, given: Mapping[str, Any]) -> bytes:
        invocation.given = given
        return await self.respond(invocation)

    async def invoke(self, invocation: Invocation) -> Any:
        """Find the arguments, call the function, and send what it yields."""
        plan = self._plan
        values = await plan.awaited(invocation) if plan.waits or plan.needs_sdk else plan.values(invocation)
        positional, named = plan.place(values, invocation.given)
        if self._sync:
            return await self._run_sync(functools.partial(self._function, *positional, **named), invocation.turn)
        value = self._function(*positional, **named)
        if isinstance(value, CoroutineType):
            value = await value
        return value if value is None else await self._drained(await settled(value), invocation.turn)

    async def answer(self, value: Any, invocation: Invocation) -> bytes:
        """The JSON of the answer; nothing for a notification."""
        if self._returns is not None:
            value = await settled(self._returns.handle(value, invocation))
        if invocation.call.id is None:
            return b""
        turn = invocation.turn
        if turn is not None:
            return await prompt_result(value, turn)
        if value is None and self._may_be_silent:
            return b"{}"
        return to_json(value, self.method)

    async def _drained(self, value: Any, turn: PromptContext | None) -> Any:
        if turn is None or self._returns is not None or not inspect.isasyncgen(value):
            return value
        return await _pump(value, turn)

    async def _run_sync(self, call: Callable[[], Any], turn: PromptContext | None) -> Any:
        value = await self._executor.run(functools.partial(self._called, call, turn))
        if turn is not None:
            turn.bridge.flush()
        return await settled(value)

    def _called(self, call: Callable[[], Any], turn: PromptContext | None) -> Any:
        value = call()
        if turn is None or self._returns is not None or not inspect.isgenerator(value):
            return value
        return _drain(value, turn)


async def _pump(generator: AsyncGenerator[Any, Any], turn: PromptContext) -> Any:
    """Send what is yielded; an item that is a result ends the turn with it."""
    try:
        async for item in generator:
            if is_prompt_result(item):
                return item
            await send_item(item, turn)
    finally:
        await generator.aclose()
    return None


def _drain(generator: Generator[Any, Any, Any], turn: PromptContext) -> Any:
    """The same on a thread; a result may also be returned."""
    try:
        while True:
            item = next(generator)
            if is_prompt_result(item):
                return item
            turn.bridge.send(turn, encoded(item, turn))
    except StopIteration as end:
        return end.value
    finally:
        generator.close()
