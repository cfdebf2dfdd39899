"""What each side announces at `initialize`; what is missing is not supported."""

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from acp_integration.wire.structure import Choice, Lenient, NullMeansEmpty, Supported, WireStruct


class Implementation(WireStruct):
    """Name and version of a program, with a title for people."""

    name: str
    version: str
    title: Lenient[str | None] = None


class FileSystemCapabilities(WireStruct):
    """Which file methods a client serves."""

    read_text_file: Lenient[bool] = False
    write_text_file: Lenient[bool] = False


class SessionConfigOptionsCapabilities(WireStruct):
    """Which kinds of config option a client shows beyond a selection."""

    boolean: Lenient[Supported | None] = None


class ClientSessionCapabilities(WireStruct):
    """Which newer updates of a session a client understands."""

    compaction: Lenient[Supported | None] = None
    config_options: Lenient[SessionConfigOptionsCapabilities | None] = None
    notices: Lenient[Supported | None] = None


class AuthCapabilities(WireStruct):
    """Which kinds of authentication a client can run."""

    terminal: Lenient[bool] = False


class ElicitationCapabilities(WireStruct):
    """Which kinds of question a client can put to its user."""

    form: Lenient[Supported | None] = None
    url: Lenient[Supported | None] = None


class ClientCapabilities(WireStruct):
    """Everything a client announces; `plan` and `subagents` are unstable."""

    fs: Lenient[FileSystemCapabilities] = FileSystemCapabilities()
    terminal: Lenient[bool] = False
    session: Lenient[ClientSessionCapabilities | None] = None
    auth: Lenient[AuthCapabilities] = AuthCapabilities()
    elicitation: Lenient[ElicitationCapabilities | None] = None
    plan: Lenient[Supported | None] = None
    subagents: Lenient[Supported | None] = None


class PromptCapabilities(WireStruct):
    """Which content an agent takes in prompts beyond text and links."""

    image: Lenient[bool] = False
    audio: Lenient[bool] = False
    embedded_context: Lenient[bool] = False


class McpCapabilities(WireStruct):
    """Which MCP servers an agent can use beyond programs; `acp` is unstable."""

    http: Lenient[bool] = False
    sse: Lenient[bool] = False
    acp: Lenient[bool] = False


class SessionSystemPromptModeCapabilities(WireStruct):
    """Which ways of giving a system prompt an agent takes beyond appending."""

    override: Lenient[Supported | None] = None


class SessionSystemPromptCapabilities(WireStruct):
    """How an agent takes a client's system prompt."""

    mode: Lenient[SessionSystemPromptModeCapabilities | None] = None


class SessionCapabilities(WireStruct):
    """Which optional session methods an agent serves; `fork`, `archive`, `status` and `title` are unstable."""

    list: Lenient[Supported | None] = None
    delete: Lenient[Supported | None] = None
    additional_directories: Lenient[Supported | None] = None
    resume: Lenient[Supported | None] = None
    close: Lenient[Supported | None] = None
    system_prompt: Lenient[SessionSystemPromptCapabilities | None] = None
    fork: Lenient[Supported | None] = None
    archive: Lenient[Supported | None] = None
    status: Lenient[Supported | None] = None
    title: Lenient[Supported | None] = None


class AgentAuthCapabilities(WireStruct):
    """Which optional authentication methods an agent serves; `status` is unstable."""

    logout: Lenient[Supported | None] = None
    status: Lenient[Supported | None] = None


class AgentCapabilities(WireStruct):
    """Everything an agent announces; `providers` is unstable."""

    load_session: Lenient[bool] = False
    prompt_capabilities: Lenient[PromptCapabilities] = PromptCapabilities()
    mcp_capabilities: Lenient[McpCapabilities] = McpCapabilities()
    session_capabilities: Lenient[SessionCapabilities] = SessionCapabilities()
    auth: Lenient[AgentAuthCapabilities] = AgentAuthCapabilities()
    providers: Lenient[Supported | None] = None


class AuthMethod(Choice):
    """A way to authenticate: by the agent itself, unless its `type` says in a terminal."""

    __slots__ = ()

    @classmethod
    def choose(cls, value: Mapping[str, Any]) -> type[Choice] | None:
        """A terminal where `type` says so."""
        return AuthMethodTerminal if value.get("type") == "terminal" else AuthMethodAgent


class AuthMethodAgent(WireStruct, AuthMethod):
    """The agent authenticates its user by itself."""

    id: str
    name: str
    description: Lenient[str | None] = None


class AuthMethodTerminal(WireStruct, AuthMethod, tag_field="type", tag="terminal"):
    """The client runs the agent's program in a terminal with these arguments and variables."""

    id: str
    name: str
    description: Lenient[str | None] = None
    args: NullMeansEmpty[list[str]] = msgspec.field(default_factory=list)
    env: NullMeansEmpty[dict[str, str]] = msgspec.field(default_factory=dict)


NO_CLIENT_CAPABILITIES: Final = ClientCapabilities()
NO_AGENT_CAPABILITIES: Final = AgentCapabilities()
