"""What a handler returned, as the JSON of its answer."""

from typing import Any, Final

import msgspec

from acp_integration import sdk
from acp_integration.context.turn import PromptContext
from acp_integration.errors import RequestError
from acp_integration.jsonrpc import INTERNAL_ERROR, encode

END_TURN: Final = b'{"stopReason":"end_turn"}'


def to_json(value: Any, method: str) -> bytes:
    """A response model, mapping or struct as JSON.

    Raises:
        RequestError: -32603 if there is no result.
    """
    if value is None:
        raise RequestError(INTERNAL_ERROR, f"The {method} handler produced no response (it returned nothing)")
    if sdk.is_model(value):
        return sdk.to_json(value)
    return encode(value)


async def prompt_result(value: Any, turn: PromptContext) -> bytes:
    """What a prompt handler returned: text is sent as a message, nothing ends the turn."""
    if value is None or value == "":
        return END_TURN
    if isinstance(value, str):
        await turn.send_message(value)
        return END_TURN
    return to_json(value, "session/prompt")


async def send_item(item: Any, turn: PromptContext) -> None:
    """Send what a generator yielded."""
    if isinstance(item, str):
        await turn.send_message(item)
    elif isinstance(item, msgspec.Struct | dict):
        await turn.send_update(item)
    else:
        raise TypeError(f"A prompt handler yields text, content blocks and updates, not {type(item).__name__}")
