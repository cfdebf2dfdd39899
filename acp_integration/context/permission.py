"""Asking a person whether something may be done, or which of several things."""

from collections.abc import Sequence
from typing import Any, Final

import msgspec

from acp_integration.errors import RequestError, TurnCancelled
from acp_integration.jsonrpc import INTERNAL_ERROR, encode
from acp_integration.requests import ask
from acp_integration.turns import Call
from acp_integration.types import to_wire
from acp_integration.wire import methods
from acp_integration.wire.client import SelectedPermissionOutcome
from acp_integration.wire.decoding import decode_result

ALLOW: Final = "allow"
REJECT: Final = "reject"
YES_OR_NO: Final = (
    {"optionId": ALLOW, "name": "Allow", "kind": "allow_once"},
    {"optionId": REJECT, "name": "Reject", "kind": "reject_once"},
)


class Permission(msgspec.Struct, frozen=True):
    """What a person decided.

    Attributes:
        option_id: the option that was selected; None if the question was cancelled.
    """

    option_id: str | None

    @property
    def cancelled(self) -> bool:
        """Whether nobody decided, because the turn was cancelled."""
        return self.option_id is None

    def __str__(self) -> str:
        return "cancelled" if self.option_id is None else f"selected:{self.option_id}"


async def request_permission(call: Call, tool_call: Any, options: Sequence[Any]) -> Permission:
    """Ask about a tool call, given by its id or in its wire form."""
    described = {"toolCallId": tool_call} if isinstance(tool_call, str) else to_wire(tool_call)
    offered = [to_wire(option) for option in options]
    params = encode({"sessionId": call.session_id, "toolCall": described, "options": offered})
    timeout = call.peer.options.interaction_timeout
    try:
        raw = await ask(call, methods.SESSION_REQUEST_PERMISSION, params, timeout=timeout)
    except TurnCancelled:
        return Permission(None)
    outcome = decode_result(methods.SESSION_REQUEST_PERMISSION, raw).outcome
    if not isinstance(outcome, SelectedPermissionOutcome):
        return Permission(None)
    if outcome.option_id not in [option.get("optionId") for option in offered]:
        raise RequestError(INTERNAL_ERROR, "The client selected an option that was not offered", "unoffered-option")
    return Permission(outcome.option_id)


def choices(options: Sequence[str]) -> list[dict[str, Any]]:
    """The options of a choice: each is allowed once, and known by its place.

    Raises:
        ValueError: if there are fewer than two, or two are the same.
    """
    if len(options) < 2 or len(set(options)) != len(options):
        raise ValueError("A choice has at least two different options")
    return [{"optionId": str(place), "name": name, "kind": "allow_once"} for place, name in enumerate(options)]
