"""Light values of both sides: content, tool calls and updates; frozen, and one call away from their wire form."""

import base64
from collections.abc import Mapping, Sequence
from typing import Any, Protocol, runtime_checkable

import msgspec

from acp_integration import sdk

JsonObject = Mapping[str, Any]


@runtime_checkable
class WireValue(Protocol):
    """Anything that knows its JSON form; every value of this module does."""

    def to_wire(self) -> dict[str, Any]:
        """The value as the protocol spells it."""
        ...


class Text(msgspec.Struct, frozen=True):
    """Plain text or Markdown."""

    text: str

    def to_wire(self) -> dict[str, Any]:
        """A `text` content block."""
        return {"type": "text", "text": self.text}


class Image(msgspec.Struct, frozen=True):
    """An image: bytes, or base64 text that is sent as it is."""

    data: bytes | str
    mime_type: str
    uri: str | None = None

    def to_wire(self) -> dict[str, Any]:
        """An `image` content block."""
        block = {"type": "image", "data": _base64(self.data), "mimeType": self.mime_type, "uri": self.uri}
        return _without_none(block)


class Audio(msgspec.Struct, frozen=True):
    """A sound: bytes, or base64 text that is sent as it is."""

    data: bytes | str
    mime_type: str

    def to_wire(self) -> dict[str, Any]:
        """An `audio` content block."""
        return {"type": "audio", "data": _base64(self.data), "mimeType": self.mime_type}


class Resource(msgspec.Struct, frozen=True):
    """A resource whose contents come along: text, or bytes."""

    uri: str
    contents: str | bytes
    mime_type: str | None = None

    def to_wire(self) -> dict[str, Any]:
        """A `resource` content block."""
        key, value = ("text", self.contents) if isinstance(self.contents, str) else ("blob", _base64(self.contents))
        return {
            "type": "resource",
            "resource": _without_none({"uri": self.uri, key: value, "mimeType": self.mime_type}),
        }


class ResourceLink(msgspec.Struct, frozen=True, kw_only=True):
    """A reference to something the agent can fetch; `size` is bytes."""

    uri: str
    name: str
    title: str | None = None
    description: str | None = None
    mime_type: str | None = None
    size: int | None = None

    def to_wire(self) -> dict[str, Any]:
        """A `resource_link` content block."""
        return _without_none(
            {
                "type": "resource_link",
                "uri": self.uri,
                "name": self.name,
                "title": self.title,
                "description": self.description,
                "mimeType": self.mime_type,
                "size": self.size,
            }
        )


class ToolCall(msgspec.Struct, frozen=True, kw_only=True):
    """What an agent does with a tool; None leaves a field out.

    Attributes:
        id: names the call in its session.
        title: what a person sees.
        kind: read, edit, delete, move, search, execute, think, fetch, switch_mode or other.
        status: pending, in_progress, completed or failed.
        content: what the call produced, as mappings of the wire form or content values.
        locations: the files it touches, as mappings of the wire form.
    """

    id: str
    title: str | None = None
    kind: str | None = None
    status: str | None = None
    content: Sequence[Any] | None = None
    locations: Sequence[Any] | None = None
    raw_input: Any = None
    raw_output: Any = None

    def to_wire(self) -> dict[str, Any]:
        """The fields of a `tool_call` or `tool_call_update`, without the kind of update."""
        return _without_none(
            {
                "toolCallId": self.id,
                "title": self.title,
                "kind": self.kind,
                "status": self.status,
                "content": None if self.content is None else [_tool_content(item) for item in self.content],
                "locations": None if self.locations is None else [to_wire(item) for item in self.locations],
                "rawInput": self.raw_input,
                "rawOutput": self.raw_output,
            }
        )


class Update(msgspec.Struct, frozen=True):
    """One `session/update`, of a kind this version knows or of one it does not.

    Attributes:
        raw: the update as it came.
        session_id: the session it belongs to, where it was received.
    """

    raw: JsonObject
    session_id: str | None = None

    @property
    def kind(self) -> str:
        """The value of `sessionUpdate`, for example ``agent_message_chunk``."""
        kind = self.raw.get("sessionUpdate")
        return kind if isinstance(kind, str) else ""

    @property
    def text(self) -> str:
        """The text of a message, thought or user message chunk; empty for every other update."""
        content = self.raw.get("content")
        text = content.get("text") if isinstance(content, Mapping) else None
        return text if isinstance(text, str) else ""

    def model(self) -> Any:
        """The official SDK's model of this update.

        Raises:
            ValueError: if the installed SDK does not know this kind of update.
        """
        return sdk.update_model(self.raw)

    def to_wire(self) -> dict[str, Any]:
        """The update itself."""
        return dict(self.raw)


def to_wire(value: Any) -> dict[str, Any]:
    """The JSON form of a content value, a mapping, or a model of the official SDK; text becomes a text block.

    Raises:
        TypeError: for anything else.
    """
    if isinstance(value, str):
        return Text(value).to_wire()
    if isinstance(value, WireValue):
        return value.to_wire()
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, msgspec.Struct) or sdk.is_model(value):
        to_builtins = msgspec.to_builtins if isinstance(value, msgspec.Struct) else sdk.to_builtins
        plain: dict[str, Any] = to_builtins(value)
        return plain
    raise TypeError(
        f"{type(value).__name__} has no wire form: use text, a value of acp_integration.types, a mapping or a model"
    )


def _tool_content(item: Any) -> dict[str, Any]:
    wire = to_wire(item)
    return wire if wire.get("type") in {"content", "diff", "terminal"} else {"type": "content", "content": wire}


def _base64(data: bytes | str) -> str:
    return data if isinstance(data, str) else base64.b64encode(data).decode("ascii")


def _without_none(values: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in values.items() if value is not None}
