"""The settings of an agent that this process serves."""

from typing import Any, ClassVar, Literal

import msgspec
from pydantic import Field

from acp_integration.configuration.kinds import (
    Directories,
    Duration,
    EndpointPath,
    ExecutorName,
    Flag,
    Hosts,
    Names,
    Number,
    Origins,
    Port,
    PositiveDuration,
    Secret,
    SessionStore,
    Size,
    Text,
    TransportType,
)
from acp_integration.options import BackplaneOptions, EndpointOptions, HostOptions, ListenerOptions, RuntimeOptions
from acp_integration.settings.sections import Section, Settings, options_of


class Listener(Section):
    """Where an own listener binds; a web server that already listens decides that itself."""

    host: Text | None = Field(default=None, description="Address to bind; unset binds the loopback addresses only.")
    port: Port | None = Field(default=None, description="Port to bind; 0 takes a free one.")
    max_concurrent_streams_per_connection: Number | None = Field(
        default=None, description="HTTP/2 streams of one connection."
    )


class Http(Section):
    """How the agent is served over HTTP and WebSocket."""

    path: EndpointPath | None = Field(default=None, description="Path of the endpoint.")
    allowed_origins: Origins | None = Field(
        default=None,
        description="Browser origins served besides loopback; `https://*.example.com` is a domain, `*` any origin.",
    )
    allowed_hosts: Hosts | None = Field(
        default=None,
        description="Hosts the endpoint may be called by; unset checks nothing. Django applies its own rule.",
    )
    require_auth: Flag | None = Field(
        default=None, description="With no user and no guard, serve loopback peers only; others are refused with 403."
    )
    allow_stdio_mcp_servers: Flag | None = Field(
        default=None, description="Let a remote client name MCP servers, which are commands that this machine runs."
    )
    roots: Directories | None = Field(
        default=None,
        description="Directories inside which the working directory of a remote client's session must lie.",
    )
    max_post_body_size: Size | None = Field(
        default=None, description="Largest POST body and WebSocket message; only lowers `max-message-size`."
    )
    keep_alive_interval: Duration | None = Field(
        default=None, description="Time between comments on an idle event stream."
    )
    mailbox_capacity: Number | None = Field(
        default=None, description="Events kept while nobody reads a stream; one more closes the connection."
    )
    max_pending_sse_events: Number | None = Field(
        default=None, description="Events queued for a reader; one more detaches it, the events are kept."
    )
    max_web_socket_pending_frames: Number | None = Field(
        default=None, description="Frames queued for a socket; one more closes it."
    )
    max_provisional_sessions: Number | None = Field(
        default=None, description="Session streams opened before their session is known, for each connection."
    )
    max_connections: Number | None = Field(default=None, description="Connections open at once.")
    max_connections_per_principal: Number | None = Field(
        default=None, description="Connections of one user open at once."
    )
    connection_idle_timeout: Duration | None = Field(
        default=None, description="How long an HTTP connection lives with no stream, no turn and no request."
    )
    shutdown_timeout: PositiveDuration | None = Field(default=None, description="Bound of closing the endpoint.")
    web_socket_idle_timeout: PositiveDuration | None = Field(
        default=None, description="Silence after which a socket is closed."
    )
    initialize_timeout: PositiveDuration | None = Field(default=None, description="How long `initialize` may take.")
    listener: Listener = Listener()


class AgentTransport(Section):
    """How the agent is reached."""

    type: TransportType | None = Field(
        default=None,
        description="What is served; unset, the way the process was started decides, and a start that contradicts "
        "an explicit value fails. `http` and `websocket` are the same endpoint.",
    )
    http: Http = Http()


class Backplane(Section):
    """How the workers that serve one agent find each other's connections."""

    url: Text | None = Field(
        default=None,
        description="Where workers meet: `memory:` (nowhere), `unix:/a/directory`, `redis://host:port/0` (or "
        "`rediss:`, `valkey:`, `valkeys:`); unset, the workers of one server find each other.",
    )
    key: Secret | None = Field(
        default=None, description="Key that authenticates messages between hosts; Redis needs one."
    )


class AcpAgentSettings(Settings):
    """What can be set for an agent that is served; whatever is unset keeps the default of the part it is for.

    Made directly, an invalid value raises pydantic's ``ValidationError``; `from_mapping` and `load` raise
    `ConfigurationError` instead, with one line for every bad key.
    """

    default_prefix: ClassVar[str] = "acp.agent"
    defaults: ClassVar[tuple[Any, ...]] = (HostOptions(), RuntimeOptions(), EndpointOptions(), ListenerOptions())

    enabled: Flag | None = Field(default=None, description="Serve an agent; false creates none, on any transport.")
    request_timeout: Duration | None = Field(
        default=None, description="How long a client may take to answer a request."
    )
    interaction_timeout: Duration | None = Field(
        default=None, description="How long a person may take to answer a permission request or an elicitation."
    )
    cancel_grace_period: Duration | None = Field(
        default=None, description="Time a handler has to finish after its turn was cancelled."
    )
    max_prompt_duration: Duration | None = Field(default=None, description="How long one turn may take.")
    max_concurrent_requests: Number | None = Field(
        default=None, description="Prompts, MCP and extension requests at once on one connection; the next is refused."
    )
    sync_threads: Number | None = Field(default=None, description="Threads of this process that run sync handlers.")
    drain_timeout: Duration | None = Field(
        default=None, description="At end of input, time for turns to finish by themselves; 0 cancels them at once."
    )
    abort_timeout: Duration | None = Field(
        default=None, description="Time for cancelled turns to end before they are aborted."
    )
    session_idle_timeout: Duration | None = Field(
        default=None, description="Age at which an unused session is forgotten."
    )
    detached_turn_timeout: Duration | None = Field(
        default=None, description="How long a turn of an HTTP connection goes on with nobody reading its stream."
    )
    max_message_size: Size | None = Field(default=None, description="Largest message accepted, on every transport.")
    shutdown_on_transport_end: Flag | None = Field(
        default=None, description="Stop the application when its only transport has ended; never for HTTP."
    )
    handler_executor: ExecutorName | None = Field(
        default=None, description="Where sync handlers run: `none` for own threads; unset, the framework's threads."
    )
    session_store: SessionStore | None = Field(default=None, description="What keeps sessions over a restart.")
    plugins: Names | None = Field(
        default=None, description="Installed plugins to use, by name, or `all`; without any, none is looked for."
    )
    transport: AgentTransport = AgentTransport()
    backplane: Backplane = Backplane()

    def runtime_options(self) -> RuntimeOptions:
        """What bounds the agent on one connection."""
        return options_of(RuntimeOptions, self)

    def endpoint_options(self) -> EndpointOptions:
        """What bounds the endpoint that serves the agent."""
        url, key = self.backplane.url, self.backplane.key
        workers = BackplaneOptions(url=url, key=None if key is None else key.get_secret_value())
        return msgspec.structs.replace(options_of(EndpointOptions, self.transport.http, self), workers=workers)

    def listener_options(self) -> ListenerOptions:
        """Where an own listener binds."""
        return options_of(ListenerOptions, self.transport.http.listener)

    def host_options(self) -> HostOptions:
        """What the framework that holds the agent acts on."""
        return options_of(HostOptions, self)

    @property
    def serves(self) -> Literal["stdio", "http"] | None:
        """What is served by an explicit choice; None if the way the process was started decides."""
        if self.transport.type is None:
            return None
        return "stdio" if self.transport.type == "stdio" else "http"
