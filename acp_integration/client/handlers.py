"""The application's handlers of what an agent sends: how each is called, and how what it returns is answered."""

import inspect
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final

import msgspec

from acp_integration import jsonrpc
from acp_integration.client.answers import ANSWERS, NOT_SUPPORTED
from acp_integration.client.permissions import deny, is_denial
from acp_integration.errors import RequestError
from acp_integration.execution import HandlerExecutor, ThreadExecutor
from acp_integration.types import Update, to_wire
from acp_integration.wire import methods
from acp_integration.wire.client import RequestPermissionRequest
from acp_integration.wire.decoding import decode_params

logger = logging.getLogger(__name__)

Handler = Callable[..., Any]

_KNOWN: Final = frozenset({*ANSWERS, methods.ELICITATION_COMPLETE})


@dataclass(slots=True)
class ClientHandlers:
    """Everything a client does with what its agent sends.

    Attributes:
        updates: the handlers of updates, called one after the other.
        requests: the handler of each request, by method.
        notifications: the handler of each notification but updates, by method.
        executor: where sync handlers run.
        denied: told of every permission that was answered with no.
    """

    updates: list[Handler] = field(default_factory=list)
    requests: dict[str, Handler] = field(default_factory=dict)
    notifications: dict[str, Handler] = field(default_factory=dict)
    executor: HandlerExecutor = field(default_factory=ThreadExecutor)
    denied: Callable[[RequestPermissionRequest], object] = bool

    async def updated(self, update: Update) -> None:
        """Call every update handler; one that fails is logged and stops nothing."""
        for handler in self.updates:
            await self._guarded(handler, update)

    async def notified(self, notification: jsonrpc.Notification) -> None:
        """Call the handler of a notification, if there is one."""
        handler = self.notifications.get(notification.method)
        if handler is None:
            logger.debug("Nobody handles the notification %s", notification.method)
        elif notification.method in _KNOWN:
            await self._guarded(handler, decode_params(notification.method, notification.params))
        else:
            await self._guarded(handler, msgspec.json.decode(notification.params))

    async def answer(self, request: jsonrpc.Request) -> bytes:
        """Call the handler of a request; its answer as JSON.

        Raises:
            RequestError: if there is no handler, or what it returned is no answer.
        """
        handler = self.requests.get(request.method) or _DEFAULTS.get(request.method)
        if handler is None:
            data = NOT_SUPPORTED.get(request.method)
            raise RequestError(jsonrpc.METHOD_NOT_FOUND, f"Method not found: {request.method}", data)
        if request.method not in _KNOWN:
            return _encode(await self.call(handler, msgspec.json.decode(request.params)))
        params = decode_params(request.method, request.params)
        answer = ANSWERS[request.method](params, await self.call(handler, params))
        if request.method == methods.SESSION_REQUEST_PERMISSION and is_denial(params, answer):
            self.denied(params)
        return _encode(answer)

    async def call(self, handler: Handler, argument: Any) -> Any:
        """Call a handler: an async one here, a sync one on a thread."""
        async with self.executor.scope():
            if _is_async(handler):
                return await handler(argument)
            value = await self.executor.run(partial(handler, argument))
            return await value if isinstance(value, Awaitable) else value

    async def _guarded(self, handler: Handler, argument: Any) -> None:
        try:
            await self.call(handler, argument)
        except Exception:  # one bad handler never ends a connection
            logger.exception("The handler %s failed", getattr(handler, "__qualname__", handler))


async def log_update(update: Update) -> None:
    """What a client does with updates until the application adds a handler: one line at DEBUG."""
    logger.debug("Update %s of session %s: %s", update.kind, update.session_id, update.raw)


async def deny_by_default(request: RequestPermissionRequest) -> str | None:
    """What a client answers to permissions until the application adds a handler: no, and a warning."""
    logger.warning("Denied a tool call of session %s: there is no permission handler", request.session_id)
    return deny(request)


_DEFAULTS: Final = {methods.SESSION_REQUEST_PERMISSION: deny_by_default}


def _encode(value: Any) -> bytes:
    return jsonrpc.encode(to_wire(value) if hasattr(value, "model_dump") else value)


def _is_async(handler: Handler) -> bool:
    return inspect.iscoroutinefunction(handler) or inspect.iscoroutinefunction(getattr(handler, "__call__", None))  # noqa: B004
