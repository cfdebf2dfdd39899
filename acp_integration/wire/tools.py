"""Tool calls: how an agent shows what it does, and the options it offers before it does it."""

from typing import Any, Literal

import msgspec

from acp_integration.wire.content import ReceivedContent
from acp_integration.wire.structure import Items, Lenient, Unknown, Unsigned, WireStruct

ToolKind = Literal["read", "edit", "delete", "move", "search", "execute", "think", "fetch", "switch_mode", "other"]
ToolCallStatus = Literal["pending", "in_progress", "completed", "failed"]
PermissionOptionKind = Literal["allow_once", "allow_always", "reject_once", "reject_always"]


class ContentToolCallContent(WireStruct, tag_field="type", tag="content"):
    """Content a tool call produced."""

    content: ReceivedContent


class FileEditToolCallContent(WireStruct, tag_field="type", tag="diff"):
    """A change of a file; without `old_text` the file is new."""

    path: str
    new_text: str
    old_text: Lenient[str | None] = None


class TerminalToolCallContent(WireStruct, tag_field="type", tag="terminal"):
    """A terminal whose output is shown live."""

    terminal_id: str


class UnknownToolCallContent(Unknown, tag_field="type"):
    """A kind of tool call content that this version does not know."""


ToolCallContent = ContentToolCallContent | FileEditToolCallContent | TerminalToolCallContent
ReceivedToolCallContent = ToolCallContent | UnknownToolCallContent


class ToolCallLocation(WireStruct):
    """A place a tool call touches; `line` is 1-based."""

    path: str
    line: Lenient[Unsigned | None] = None


class ToolCall(WireStruct):
    """A tool call as it is first shown."""

    tool_call_id: str
    title: str
    name: Lenient[str | None] = None
    kind: Lenient[ToolKind] = "other"
    status: Lenient[ToolCallStatus] = "pending"
    content: Items[list[ReceivedToolCallContent]] = msgspec.field(default_factory=list)
    locations: Items[list[ToolCallLocation]] = msgspec.field(default_factory=list)
    raw_input: Any = None
    raw_output: Any = None


class ToolCallUpdate(WireStruct):
    """What changed about a tool call; None means unchanged."""

    tool_call_id: str
    title: Lenient[str | None] = None
    name: Lenient[str | None] = None
    kind: Lenient[ToolKind | None] = None
    status: Lenient[ToolCallStatus | None] = None
    content: Items[list[ReceivedToolCallContent] | None] = None
    locations: Items[list[ToolCallLocation] | None] = None
    raw_input: Any = None
    raw_output: Any = None


class PermissionOption(WireStruct):
    """One answer offered to the person who is asked."""

    option_id: str
    name: str
    kind: PermissionOptionKind
