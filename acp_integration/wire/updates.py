"""The kinds of `session/update`."""

from collections.abc import Mapping
from typing import Annotated, Final, Literal

import msgspec

from acp_integration.wire.content import ReceivedContent
from acp_integration.wire.session import SessionConfigOption
from acp_integration.wire.structure import Items, Lenient, Unknown, Unsigned, WireStruct, always_written
from acp_integration.wire.tools import ToolCall, ToolCallUpdate

PlanEntryPriority = Literal["high", "medium", "low"]
PlanEntryStatus = Literal["pending", "in_progress", "completed"]


class ContentChunk(WireStruct):
    """A piece of a message; pieces with the same `message_id` belong together."""

    content: ReceivedContent
    message_id: Lenient[str | None] = None


class UserMessageChunk(ContentChunk, tag_field="sessionUpdate", tag="user_message_chunk"):
    """A piece of what the user said."""


class AgentMessageChunk(ContentChunk, tag_field="sessionUpdate", tag="agent_message_chunk"):
    """A piece of what the agent says."""


class AgentThoughtChunk(ContentChunk, tag_field="sessionUpdate", tag="agent_thought_chunk"):
    """A piece of what the agent thinks."""


class ToolCallStart(ToolCall, tag_field="sessionUpdate", tag="tool_call"):
    """A tool call begins."""


class ToolCallProgress(ToolCallUpdate, tag_field="sessionUpdate", tag="tool_call_update"):
    """A tool call changed."""


class PlanEntry(WireStruct):
    """One step of a plan."""

    content: str
    priority: PlanEntryPriority
    status: PlanEntryStatus


class AgentPlanUpdate(WireStruct, tag_field="sessionUpdate", tag="plan"):
    """The whole plan, replacing the one before."""

    entries: Items[list[PlanEntry]] = msgspec.field(default_factory=always_written)


class PlanItems(WireStruct, tag_field="type", tag="items"):
    """A plan as a list of steps (unstable)."""

    plan_id: str
    entries: Items[list[PlanEntry]] = msgspec.field(default_factory=always_written)


class PlanFile(WireStruct, tag_field="type", tag="file"):
    """A plan kept in a file (unstable)."""

    plan_id: str
    uri: str


class PlanMarkdown(WireStruct, tag_field="type", tag="markdown"):
    """A plan as Markdown (unstable)."""

    plan_id: str
    content: str


class PlanUpdate(WireStruct, tag_field="sessionUpdate", tag="plan_update"):
    """One of several plans, new or changed (unstable)."""

    plan: PlanItems | PlanFile | PlanMarkdown


class PlanRemoved(WireStruct, tag_field="sessionUpdate", tag="plan_removed"):
    """One of several plans is gone (unstable)."""

    plan_id: str


class AvailableCommandInput(WireStruct):
    """What to type after a command."""

    hint: str


class AvailableCommand(WireStruct):
    """A command the user can start a prompt with."""

    name: str
    description: str
    input: Lenient[AvailableCommandInput | None] = None


class AvailableCommandsUpdate(WireStruct, tag_field="sessionUpdate", tag="available_commands_update"):
    """All commands, replacing those before."""

    available_commands: Items[list[AvailableCommand]] = msgspec.field(default_factory=always_written)


class CurrentModeUpdate(WireStruct, tag_field="sessionUpdate", tag="current_mode_update"):
    """The session works in another mode."""

    current_mode_id: str


class ConfigOptionUpdate(WireStruct, tag_field="sessionUpdate", tag="config_option_update"):
    """All config options, replacing those before."""

    config_options: Items[list[SessionConfigOption]] = msgspec.field(default_factory=always_written)


class SessionInfoUpdate(WireStruct, tag_field="sessionUpdate", tag="session_info_update"):
    """What changed about the session's line in a list: UNSET is unchanged, None clears."""

    title: Lenient[str | msgspec.UnsetType | None] = msgspec.UNSET
    updated_at: Lenient[str | msgspec.UnsetType | None] = msgspec.UNSET


class Cost(WireStruct):
    """What a session has cost; `currency` is an ISO 4217 code."""

    amount: float
    currency: str


class UsageUpdate(WireStruct, tag_field="sessionUpdate", tag="usage_update"):
    """How full the context is, in tokens."""

    used: Unsigned
    size: Unsigned
    cost: Lenient[Cost | None] = None


class Notice(WireStruct, tag_field="sessionUpdate", tag="notice"):
    """Something the user should know; `severity` is "info", "warning", "error" or something newer."""

    severity: str
    title: Annotated[str, msgspec.Meta(min_length=1)]
    description: Lenient[str | None] = None


class CompactionUpdate(WireStruct, tag_field="sessionUpdate", tag="compaction_update"):
    """The context is being compacted; `status` is open to newer values."""

    compaction_id: str
    status: str
    summary: Items[list[ReceivedContent] | None] = None
    error: Lenient[str | None] = None


class CompactionSummaryChunk(WireStruct, tag_field="sessionUpdate", tag="compaction_summary_chunk"):
    """A piece of the summary that replaces the compacted context."""

    compaction_id: str
    content: ReceivedContent


class UnknownUpdate(Unknown, tag_field="sessionUpdate"):
    """A kind of update that this version does not know."""


SessionUpdate = (
    UserMessageChunk
    | AgentMessageChunk
    | AgentThoughtChunk
    | ToolCallStart
    | ToolCallProgress
    | AgentPlanUpdate
    | PlanUpdate
    | PlanRemoved
    | AvailableCommandsUpdate
    | CurrentModeUpdate
    | ConfigOptionUpdate
    | SessionInfoUpdate
    | UsageUpdate
    | Notice
    | CompactionUpdate
    | CompactionSummaryChunk
)
ReceivedUpdate = SessionUpdate | UnknownUpdate

UPDATE_GATES: Final[Mapping[str, str]] = {
    "notice": "session.notices",
    "compaction_update": "session.compaction",
    "compaction_summary_chunk": "session.compaction",
    "plan_update": "plan",
    "plan_removed": "plan",
    "subagent_update": "subagents",
    "session_message": "subagents",
    "session_message_chunk": "subagents",
}
"""The client capability without which a kind of update is not sent; kinds that are not here go to every client."""
