"""Questions to the person at the client: a form to fill in, or a page to visit."""

from collections.abc import Mapping
from typing import Any, Final, Literal
from uuid import uuid4

import msgspec

from acp_integration.context.capabilities import require
from acp_integration.errors import TurnCancelled
from acp_integration.jsonrpc import encode
from acp_integration.requests import ask
from acp_integration.turns import Call
from acp_integration.types import to_wire
from acp_integration.wire import methods
from acp_integration.wire.decoding import decode_result

Action = Literal["accept", "decline", "cancel"]


class Elicitation(msgspec.Struct, frozen=True):
    """How a person answered.

    Attributes:
        action: `accept`, `decline`, or `cancel` if they did neither.
        content: what was filled in, by the names of the form's fields; empty unless accepted.
    """

    action: Action
    content: Mapping[str, Any]

    @property
    def accepted(self) -> bool:
        """Whether the person filled in the form, or agreed to open the page."""
        return self.action == "accept"


_WITHDRAWN: Final = Elicitation("cancel", {})
_ACTIONS: Final[Mapping[str, Action]] = {"accept": "accept", "decline": "decline"}


async def elicit_form(call: Call, message: str, schema: Any) -> Elicitation:
    """Show a form; `schema` is a JSON Schema of one flat object, or just its properties."""
    require(call.capabilities, "elicitation.form")
    wire = to_wire(schema)
    requested = wire if wire.get("type") == "object" else {"type": "object", "properties": wire}
    return await _elicit(call, {"mode": "form", "message": message, "requestedSchema": requested})


async def elicit_url(call: Call, message: str, url: str, elicitation_id: str | None) -> Elicitation:
    """Ask to open a page."""
    require(call.capabilities, "elicitation.url")
    identifier = elicitation_id or str(uuid4())
    return await _elicit(call, {"mode": "url", "message": message, "url": url, "elicitationId": identifier})


def complete(call: Call, elicitation_id: str) -> None:
    """Tell the client that what was to be done on a page is done."""
    require(call.capabilities, "elicitation.url")
    params = encode({"elicitationId": elicitation_id})
    call.connection.notify(methods.ELICITATION_COMPLETE, params, call.session_id)


async def _elicit(call: Call, question: dict[str, Any]) -> Elicitation:
    scope = {"requestId": call.id} if call.session_id is None else {"sessionId": call.session_id}
    timeout = call.peer.options.interaction_timeout
    try:
        raw = await ask(call, methods.ELICITATION_CREATE, encode({**scope, **question}), timeout=timeout)
    except TurnCancelled:
        return _WITHDRAWN
    answer = decode_result(methods.ELICITATION_CREATE, raw)
    action = _ACTIONS.get(answer.action, "cancel")
    return Elicitation(action, answer.content or {})
