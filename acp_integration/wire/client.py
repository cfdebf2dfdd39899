"""What a client receives, and what it answers."""

import msgspec

from acp_integration.wire.elicitation import (
    CompleteElicitationNotification,
    CreateElicitationRequest,
    CreateElicitationResponse,
)
from acp_integration.wire.mcp import EnvVariable
from acp_integration.wire.structure import Lenient, NullMeansEmpty, Unsigned, WireStruct
from acp_integration.wire.tools import PermissionOption, ToolCallUpdate
from acp_integration.wire.updates import ReceivedUpdate

__all__ = [
    "CompleteElicitationNotification",
    "CreateElicitationRequest",
    "CreateElicitationResponse",
]


class SessionNotification(WireStruct):
    """One update of a session."""

    session_id: str
    update: ReceivedUpdate


class RequestPermissionRequest(WireStruct):
    """Asks whether a tool call may go on."""

    session_id: str
    tool_call: ToolCallUpdate
    options: list[PermissionOption]


class CancelledPermissionOutcome(WireStruct, tag_field="outcome", tag="cancelled"):
    """The turn was cancelled before anybody answered."""


class SelectedPermissionOutcome(WireStruct, tag_field="outcome", tag="selected"):
    """One of the offered options was selected."""

    option_id: str


RequestPermissionOutcome = CancelledPermissionOutcome | SelectedPermissionOutcome


class RequestPermissionResponse(WireStruct):
    """What was decided."""

    outcome: RequestPermissionOutcome


class ReadTextFileRequest(WireStruct):
    """Reads a file as the client sees it; `line` is 1-based, `limit` counts lines."""

    session_id: str
    path: str
    line: Unsigned | None = None
    limit: Unsigned | None = None


class ReadTextFileResponse(WireStruct):
    """The text that was read."""

    content: str


class WriteTextFileRequest(WireStruct):
    """Writes a file through the client."""

    session_id: str
    path: str
    content: str


class WriteTextFileResponse(WireStruct):
    """The file is written."""


class CreateTerminalRequest(WireStruct):
    """Starts a command; past `output_byte_limit` bytes the oldest output is dropped."""

    session_id: str
    command: str
    args: NullMeansEmpty[list[str]] = msgspec.field(default_factory=list)
    env: NullMeansEmpty[list[EnvVariable]] = msgspec.field(default_factory=list)
    cwd: str | None = None
    output_byte_limit: Unsigned | None = None


class CreateTerminalResponse(WireStruct):
    """The terminal the command runs in."""

    terminal_id: str


class TerminalOutputRequest(WireStruct):
    """Asks for the output so far."""

    session_id: str
    terminal_id: str


class TerminalExitStatus(WireStruct):
    """How a command ended."""

    exit_code: Lenient[Unsigned | None] = None
    signal: Lenient[str | None] = None


class TerminalOutputResponse(WireStruct):
    """The output so far; `exit_status` is None while the command runs."""

    output: str
    truncated: bool
    exit_status: Lenient[TerminalExitStatus | None] = None


class WaitForTerminalExitRequest(WireStruct):
    """Waits until the command has ended."""

    session_id: str
    terminal_id: str


class WaitForTerminalExitResponse(WireStruct):
    """How the command ended."""

    exit_code: Lenient[Unsigned | None] = None
    signal: Lenient[str | None] = None


class KillTerminalRequest(WireStruct):
    """Ends the command and keeps the terminal."""

    session_id: str
    terminal_id: str


class KillTerminalResponse(WireStruct):
    """The command was told to end."""


class ReleaseTerminalRequest(WireStruct):
    """Ends the command and gives the terminal back."""

    session_id: str
    terminal_id: str


class ReleaseTerminalResponse(WireStruct):
    """The terminal is gone."""
