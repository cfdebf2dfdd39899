"""What a handler returned or yielded, as the JSON of its answer."""

import inspect
from collections.abc import Mapping
from typing import Any, Final

import msgspec

from acp_integration import sdk
from acp_integration.context import updates
from acp_integration.context.ambient import encoded
from acp_integration.context.turn import PromptContext
from acp_integration.errors import RequestError
from acp_integration.interception import Vetoed
from acp_integration.jsonrpc import INTERNAL_ERROR, encode
from acp_integration.wire import methods
from acp_integration.wire.decoding import RESULTS, decode_result

END_TURN: Final = b'{"stopReason":"end_turn"}'
NEEDS_RESULT: Final = frozenset(
    {methods.SESSION_NEW, methods.SESSION_LIST, methods.SESSION_FORK, methods.PROVIDERS_LIST, methods.MCP_CONNECT}
)
"""The methods whose result has fields that only the handler can know."""


def to_json(value: Any, method: str) -> bytes:
    """A response model, mapping or struct as the JSON of a method's result.

    Raises:
        RequestError: -32603 if there is no result, or it is of another type.
        InvalidResult: if it has not the form of the method's result.
    """
    if value is None:
        if method in NEEDS_RESULT or method not in RESULTS or method == methods.MCP_MESSAGE:
            raise Vetoed(method)
        return b"{}"
    if method not in RESULTS:
        return _any_json(value)
    _check_kind(value, method)
    result = _any_json(value)
    if method not in (methods.MCP_MESSAGE, methods.INITIALIZE):  # the latter is laid over a whole answer
        decode_result(method, result)
    return result


async def prompt_result(value: Any, turn: PromptContext) -> bytes:
    """What a prompt handler returned: text and content are sent as a message, nothing ends the turn."""
    if value is None or value == "":
        return END_TURN
    if isinstance(value, str) or updates.is_content(value):
        await turn.send_message(value)
        return END_TURN
    return to_json(value, methods.SESSION_PROMPT)


def is_prompt_result(item: Any) -> bool:
    """Whether what a generator yielded ends the turn rather than being sent."""
    if isinstance(item, Mapping):
        return "stopReason" in item
    return sdk.is_model(item) and hasattr(item, "stop_reason")


async def send_item(item: Any, turn: PromptContext) -> None:
    """Send text, a content block or an update that a generator yielded."""
    if turn.write(encoded(item, turn)):
        await turn.rest()


async def settled(value: Any) -> Any:
    """A value, or what an awaitable gives."""
    while value is not None and inspect.isawaitable(value):
        value = await value
    return value


def _any_json(value: Any) -> bytes:
    return sdk.to_json(value) if sdk.is_model(value) else encode(value)


def _check_kind(value: Any, method: str) -> None:
    expected = getattr(RESULTS[method], "__name__", "")
    found = type(value).__name__
    if sdk.is_model(value) and found.endswith("Response") and expected and found != expected:
        raise RequestError(INTERNAL_ERROR, f"The {method} handler returned {found}, not {expected}")
    if not (sdk.is_model(value) or isinstance(value, Mapping | msgspec.Struct)) and method != methods.MCP_MESSAGE:
        raise RequestError(INTERNAL_ERROR, f"The {method} handler returned {found}, not {expected} or a mapping")
