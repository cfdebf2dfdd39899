"""From what a handler returns to what its request is answered with, by method."""

import logging
from collections.abc import Callable, Mapping
from typing import Any, Final

from acp_integration import jsonrpc
from acp_integration.errors import RequestError
from acp_integration.wire import methods
from acp_integration.wire.client import RequestPermissionRequest

logger = logging.getLogger(__name__)

CANCELLED: Final[Mapping[str, Any]] = {
    methods.SESSION_REQUEST_PERMISSION: {"outcome": {"outcome": "cancelled"}},
    methods.ELICITATION_CREATE: {"action": "cancel"},
}
"""How the requests that wait for a person are answered when their turn was cancelled."""

NOT_SUPPORTED: Final = {
    methods.FS_READ_TEXT_FILE: "File system read not supported",
    methods.FS_WRITE_TEXT_FILE: "File system write not supported",
    methods.TERMINAL_CREATE: "Terminal not supported",
    methods.TERMINAL_OUTPUT: "Terminal not supported",
    methods.TERMINAL_WAIT_FOR_EXIT: "Terminal not supported",
    methods.TERMINAL_KILL: "Terminal not supported",
    methods.TERMINAL_RELEASE: "Terminal not supported",
    methods.ELICITATION_CREATE: "Elicitation not supported",
}
"""The capability a client lacks that does not serve a method."""


def _permission(request: RequestPermissionRequest, value: Any) -> Any:
    if value is None:
        return CANCELLED[methods.SESSION_REQUEST_PERMISSION]
    if not isinstance(value, str):
        return value
    if value not in {option.option_id for option in request.options}:
        logger.error("The permission handler chose %r, which the agent did not offer", value)
        reason = {"reason": "unoffered-option", "method": methods.SESSION_REQUEST_PERMISSION}
        raise RequestError(jsonrpc.INTERNAL_ERROR, "Internal error", reason)
    return {"outcome": {"outcome": "selected", "optionId": value}}


def _nothing(_params: Any, _value: Any) -> Any:
    return {}


def _named(key: str) -> Callable[[Any, Any], Any]:
    return lambda _params, value: {key: value} if isinstance(value, str) else value


def _as_it_is(_params: Any, value: Any) -> Any:
    return value


def _elicited(_params: Any, value: Any) -> Any:
    return CANCELLED[methods.ELICITATION_CREATE] if value is None else value


ANSWERS: Final[Mapping[str, Callable[[Any, Any], Any]]] = {
    methods.SESSION_REQUEST_PERMISSION: _permission,
    methods.FS_READ_TEXT_FILE: _named("content"),
    methods.FS_WRITE_TEXT_FILE: _nothing,
    methods.TERMINAL_CREATE: _named("terminalId"),
    methods.TERMINAL_OUTPUT: _as_it_is,
    methods.TERMINAL_WAIT_FOR_EXIT: _as_it_is,
    methods.TERMINAL_KILL: _nothing,
    methods.TERMINAL_RELEASE: _nothing,
    methods.ELICITATION_CREATE: _elicited,
}
