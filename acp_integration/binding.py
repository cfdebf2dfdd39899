"""From a declared agent to a table of call plans: signatures are read here, once, and never per call."""

import functools
import inspect
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator, Mapping
from dataclasses import dataclass, field
from typing import Any

from acp_integration.agents import AgentDeclaration, declaration_of
from acp_integration.handlers import HandlerMark, marks_of
from acp_integration.context.ambient import enter_turn
from acp_integration.context.blocking import SyncPromptContext
from acp_integration.context.session import AcpSession
from acp_integration.context.turn import PromptContext
from acp_integration.errors import HandlerError
from acp_integration.execution import HandlerExecutor
from acp_integration.returns import END_TURN, prompt_result, send_item, to_json
from acp_integration.turns import Call
from acp_integration.wire import methods

Supplier = Callable[[Call], Any]


class BoundHandler:
    """One handler ready to be called.

    Attributes:
        delivers_cancel: whether a cancel is delivered to the handler's task.
        notification: whether it handles a notification and so answers no request.
        accepts_notifications: whether a notification of its method reaches it.
    """

    delivers_cancel = True
    notification = False
    accepts_notifications = False

    def __init__(self, method: str) -> None:
        self.method = method

    async def __call__(self, call: Call) -> bytes:
        """Run the handler; the result is JSON."""
        raise NotImplementedError


@dataclass(slots=True)
class BoundAgent:
    """An agent with its instance, ready to serve any number of connections."""

    declaration: AgentDeclaration
    handlers: dict[str, BoundHandler] = field(default_factory=dict)
    prompt_mark: HandlerMark = field(default_factory=lambda: HandlerMark(methods.SESSION_PROMPT))


class UserHandler(BoundHandler):
    """A user's function with the plan of its arguments."""

    def __init__(self, mark: HandlerMark, function: Callable[..., Any], executor: HandlerExecutor) -> None:
        super().__init__(mark.method)
        self._function = function
        self._executor = executor
        self._is_turn = mark.method == methods.SESSION_PROMPT
        self._sync = not (inspect.iscoroutinefunction(function) or inspect.isasyncgenfunction(function))
        self.notification = mark.notification or mark.method == methods.SESSION_CANCEL
        self.accepts_notifications = self.notification or mark.method.startswith("mcp/")
        self.delivers_cancel = not self._sync and not mark.cooperative
        self._suppliers = {
            parameter.name: _supplier(parameter, self) for parameter in inspect.signature(function).parameters.values()
        }

    async def __call__(self, call: Call) -> bytes:
        """Run the handler in its executor and make its answer."""
        async with self._executor.scope():
            turn = _turn_context(call) if self._is_turn else None
            if turn is not None:
                enter_turn(turn)
            arguments = {name: supply(call) for name, supply in self._suppliers.items()}
            value = await self._run(arguments, turn)
        if turn is not None:
            return await prompt_result(value, turn)
        return b"" if self.notification else to_json(value, self.method)

    async def _run(self, arguments: Mapping[str, Any], turn: PromptContext | None) -> Any:
        call = functools.partial(self._function, **arguments)
        if self._sync:
            return await self._run_sync(call, turn)
        started = call()
        if inspect.isasyncgen(started):
            return await _pump(started, turn)
        return await started

    async def _run_sync(self, call: Callable[[], Any], turn: PromptContext | None) -> Any:
        if turn is None:
            return await _awaited(await self._executor.run(call))
        context = SyncPromptContext(turn)
        return await _awaited(await self._executor.run(lambda: _drain(call(), context)))


async def _awaited(value: Any) -> Any:
    return await value if isinstance(value, Awaitable) else value


async def _pump(generator: AsyncGenerator[Any, None], turn: PromptContext | None) -> None:
    assert turn is not None
    try:
        async for item in generator:
            await send_item(item, turn)
    finally:
        await generator.aclose()


def _drain(value: Any, turn: SyncPromptContext) -> Any:
    if not isinstance(value, Generator):
        return value
    try:
        for item in value:
            turn.send_message(item) if isinstance(item, str) else turn.send_update(item)
    finally:
        value.close()
    return None


def _turn_context(call: Call) -> PromptContext:
    record = call.peer.sessions.get(call.session_id or "")
    return PromptContext(call, AcpSession(record, call.connection))


def _supplier(parameter: inspect.Parameter, handler: UserHandler) -> Supplier:
    if parameter.annotation is SyncPromptContext:
        return lambda call: SyncPromptContext(_turn_context(call))
    if parameter.annotation is PromptContext or parameter.name in ("turn", "context"):
        return _turn_context
    raise HandlerError(f"Nothing supplies the parameter {parameter.name}", parameter=parameter.name)


def bind(agent: Any, instance: Any, executor: HandlerExecutor) -> BoundAgent:
    """Find the handlers of a declared agent and bind them to its one instance.

    Raises:
        HandlerError: naming class, method, parameter and the fix.
    """
    declaration = declaration_of(agent)
    if declaration is None:
        raise HandlerError(f"{agent!r} is not an agent: decorate it with @acp_agent")
    bound = BoundAgent(declaration)
    for name, member in inspect.getmembers_static(agent):
        for mark in marks_of(member):
            bound.handlers[mark.method] = UserHandler(mark, getattr(instance, name), executor)
            if mark.method == methods.SESSION_PROMPT:
                bound.prompt_mark = mark
    return bound


__all__ = ["END_TURN", "BoundAgent", "BoundHandler", "UserHandler", "bind"]
