"""The JSON of updates: what the context builds itself is spliced from bytes, without building a model."""

from collections.abc import Mapping, Sequence
from typing import Any, Final, get_args

from acp_integration.jsonrpc import encode
from acp_integration.types import Audio, Image, Resource, ResourceLink, Text, to_wire
from acp_integration.wire.content import ReceivedContent

_OPEN: Final = b'{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":'
_UPDATE: Final = b',"update":'

MESSAGE: Final = "agent_message_chunk"
THOUGHT: Final = "agent_thought_chunk"
USER_MESSAGE: Final = "user_message_chunk"

_BLOCKS: Final = (Text, Image, Audio, Resource, ResourceLink, *get_args(ReceivedContent))
_KINDS: Final = frozenset({"text", "image", "audio", "resource", "resource_link"})
_TEXT: Final = {
    kind: b'{"sessionUpdate":"%b","content":{"type":"text","text":' % kind.encode()
    for kind in (MESSAGE, THOUGHT, USER_MESSAGE)
}


def frame_head(session_id: str) -> bytes:
    """What every update frame of a session begins with."""
    return _OPEN + encode(session_id) + _UPDATE


def frame(head: bytes, update: bytes) -> bytes:
    """The frame of one update."""
    return b"%b%b}}" % (head, update)


def chunk(kind: str, content: Any, message_id: str | None = None) -> bytes:
    """A piece of a message: text, or one content block."""
    if isinstance(content, str) and message_id is None:
        return b"%b%b}}" % (_TEXT[kind], encode(content))
    update = {"sessionUpdate": kind, "content": to_wire(content)}
    return encode(update if message_id is None else {**update, "messageId": message_id})


def is_content(value: Any) -> bool:
    """Whether a value is a content block, in any form but text."""
    kind = value.get("type") if isinstance(value, Mapping) else getattr(value, "type", None)
    return isinstance(value, _BLOCKS) or (kind in _KINDS and not _is_update(value))


def _is_update(value: Any) -> bool:
    return "sessionUpdate" in value if isinstance(value, Mapping) else hasattr(value, "session_update")


def plan(entries: Sequence[Any]) -> dict[str, Any]:
    """The whole plan; an entry that is only text is pending and of medium priority."""
    return {"sessionUpdate": "plan", "entries": [_plan_entry(entry) for entry in entries]}


def commands(available: Mapping[str, str] | Sequence[Any]) -> dict[str, Any]:
    """The commands a user can give: descriptions by name, or the wire form of each."""
    if isinstance(available, Mapping):
        listed = [{"name": name, "description": description} for name, description in available.items()]
    else:
        listed = [to_wire(command) for command in available]
    return {"sessionUpdate": "available_commands_update", "availableCommands": listed}


def usage(used: int, size: int, cost: float | None, currency: str) -> dict[str, Any]:
    """How much of the context window is used."""
    update = {"sessionUpdate": "usage_update", "used": used, "size": size}
    return update if cost is None else {**update, "cost": {"amount": cost, "currency": currency}}


def _plan_entry(entry: Any) -> dict[str, Any]:
    wire = {"content": entry} if isinstance(entry, str) else to_wire(entry)
    return {"priority": "medium", "status": "pending", **wire}
