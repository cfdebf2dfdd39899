"""What an agent receives, and what it answers."""

from typing import Annotated, Any, Literal

import msgspec

from acp_integration.wire.capabilities import (
    NO_AGENT_CAPABILITIES,
    NO_CLIENT_CAPABILITIES,
    AgentCapabilities,
    AuthMethod,
    ClientCapabilities,
    Implementation,
)
from acp_integration.wire.content import ContentBlock
from acp_integration.wire.mcp import McpServer
from acp_integration.wire.session import SessionConfigOption, SessionInfo, SessionModeState, SystemPrompt
from acp_integration.wire.structure import (
    Conflict,
    Items,
    Lenient,
    NullMeansEmpty,
    RequestId,
    Unsigned,
    WireStruct,
    always_written,
)

ProtocolVersion = Annotated[int, msgspec.Meta(ge=0, le=65535)]
StopReason = Literal["end_turn", "max_tokens", "max_turn_requests", "refusal", "cancelled"]


class InitializeRequest(WireStruct):
    """Opens a connection: the newest version the client speaks, and what it can do."""

    protocol_version: ProtocolVersion
    client_capabilities: Lenient[ClientCapabilities] = NO_CLIENT_CAPABILITIES
    client_info: Lenient[Implementation | None] = None


class InitializeResponse(WireStruct):
    """The version that will be spoken, and what the agent can do."""

    protocol_version: ProtocolVersion
    agent_capabilities: Lenient[AgentCapabilities] = NO_AGENT_CAPABILITIES
    auth_methods: Items[list[AuthMethod]] = msgspec.field(default_factory=list)
    agent_info: Lenient[Implementation | None] = None


class AuthenticateRequest(WireStruct):
    """Authenticates by one of the announced methods."""

    method_id: str


class AuthenticateResponse(WireStruct):
    """The client is authenticated."""


class LogoutRequest(WireStruct):
    """Ends the authentication."""


class LogoutResponse(WireStruct):
    """The authentication has ended."""


class NewSessionRequest(WireStruct):
    """Opens a session in a directory."""

    cwd: str
    mcp_servers: NullMeansEmpty[list[McpServer]] = msgspec.field(default_factory=always_written)
    additional_directories: NullMeansEmpty[list[str]] = msgspec.field(default_factory=list)
    system_prompt: SystemPrompt | None = None


class NewSessionResponse(WireStruct):
    """The session that was opened."""

    session_id: str
    modes: Lenient[SessionModeState | None] = None
    config_options: Items[list[SessionConfigOption] | None] = None


class LoadSessionRequest(WireStruct):
    """Opens an earlier session again, replaying it."""

    session_id: str
    cwd: str
    mcp_servers: NullMeansEmpty[list[McpServer]] = msgspec.field(default_factory=always_written)
    additional_directories: NullMeansEmpty[list[str]] = msgspec.field(default_factory=list)
    system_prompt: SystemPrompt | None = None


class LoadSessionResponse(WireStruct):
    """The session is open and has been replayed."""

    modes: Lenient[SessionModeState | None] = None
    config_options: Items[list[SessionConfigOption] | None] = None


class ResumeSessionRequest(WireStruct):
    """Opens an earlier session again without replaying it."""

    session_id: str
    cwd: str
    mcp_servers: NullMeansEmpty[list[McpServer]] = msgspec.field(default_factory=list)
    additional_directories: NullMeansEmpty[list[str]] = msgspec.field(default_factory=list)
    system_prompt: SystemPrompt | None = None


class ResumeSessionResponse(WireStruct):
    """The session is open."""

    modes: Lenient[SessionModeState | None] = None
    config_options: Items[list[SessionConfigOption] | None] = None


class ForkSessionRequest(WireStruct):
    """Opens a copy of a session (unstable)."""

    session_id: str
    cwd: str
    mcp_servers: NullMeansEmpty[list[McpServer]] = msgspec.field(default_factory=list)
    additional_directories: NullMeansEmpty[list[str]] = msgspec.field(default_factory=list)
    system_prompt: SystemPrompt | None = None


class ForkSessionResponse(WireStruct):
    """The copy (unstable)."""

    session_id: str
    modes: Lenient[SessionModeState | None] = None
    config_options: Items[list[SessionConfigOption] | None] = None


class ListSessionsRequest(WireStruct):
    """Asks for one page of sessions; `archived` is unstable."""

    cwd: str | None = None
    cursor: str | None = None
    archived: str | None = None


class ListSessionsResponse(WireStruct):
    """One page of sessions, with the cursor of the next one."""

    sessions: Items[list[SessionInfo]] = msgspec.field(default_factory=always_written)
    next_cursor: Lenient[str | None] = None


class CloseSessionRequest(WireStruct):
    """Cancels what a session does and frees what it holds."""

    session_id: str


class CloseSessionResponse(WireStruct):
    """The session is closed."""


class DeleteSessionRequest(WireStruct):
    """Removes a session for good."""

    session_id: str


class DeleteSessionResponse(WireStruct):
    """The session is gone."""


class PromptRequest(WireStruct):
    """Starts a turn."""

    session_id: str
    prompt: list[ContentBlock]


class Usage(WireStruct):
    """The tokens a turn took (unstable)."""

    total_tokens: Unsigned
    input_tokens: Unsigned
    output_tokens: Unsigned
    thought_tokens: Lenient[Unsigned | None] = None
    cached_read_tokens: Lenient[Unsigned | None] = None
    cached_write_tokens: Lenient[Unsigned | None] = None


class PromptResponse(WireStruct):
    """Why a turn ended; `usage` is unstable."""

    stop_reason: StopReason
    usage: Lenient[Usage | None] = None


class SetSessionModeRequest(WireStruct):
    """Switches the mode of a session."""

    session_id: str
    mode_id: str


class SetSessionModeResponse(WireStruct):
    """The mode is switched."""


class SetSessionConfigOptionRequest(WireStruct):
    """Sets a config option: a string selects a value; a boolean comes with the type "boolean"."""

    session_id: str
    config_id: str
    value: str | bool
    type: Any = None

    def __post_init__(self) -> None:
        if isinstance(self.value, bool) and self.type != "boolean":
            raise Conflict("value", 'must be a string unless "type" is "boolean"')


class SetSessionConfigOptionResponse(WireStruct):
    """The complete list of options after the change."""

    config_options: Items[list[SessionConfigOption]] = msgspec.field(default_factory=always_written)


class CancelNotification(WireStruct):
    """Cancels the turn of a session."""

    session_id: str


class CancelRequestNotification(WireStruct):
    """Withdraws a request that its sender no longer needs; sent by either side."""

    request_id: RequestId


class ProviderCurrentConfig(WireStruct):
    """How a provider is reached now (unstable)."""

    api_type: str
    base_url: str


class ProviderInfo(WireStruct):
    """One provider of models (unstable)."""

    provider_id: str
    required: bool
    supported: Items[list[str]] = msgspec.field(default_factory=always_written)
    current: ProviderCurrentConfig | None = None


class ListProvidersRequest(WireStruct):
    """Asks for the providers of models (unstable)."""


class ListProvidersResponse(WireStruct):
    """The providers of models (unstable)."""

    providers: list[ProviderInfo]


class SetProviderRequest(WireStruct):
    """Sets how a provider is reached (unstable)."""

    provider_id: str
    api_type: str
    base_url: str
    headers: dict[str, str] = msgspec.field(default_factory=dict)


class SetProviderResponse(WireStruct):
    """The provider is set (unstable)."""


class DisableProviderRequest(WireStruct):
    """Switches a provider off (unstable)."""

    provider_id: str


class DisableProviderResponse(WireStruct):
    """The provider is off (unstable)."""
