"""The settings of an agent that this process serves."""

from typing import Annotated, Any, ClassVar, Literal

import msgspec

from acp_integration.configuration.fields import Section
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
from acp_integration.settings.sections import Settings, options_of


class Listener(Section, frozen=True, kw_only=True):
    """Where an own listener binds; a web server that already listens decides that itself."""

    host: Annotated[Text | None, "Address to bind; unset binds the loopback addresses only."] = None
    port: Annotated[Port | None, "Port to bind; 0 takes a free one."] = None
    max_concurrent_streams_per_connection: Annotated[Number | None, "HTTP/2 streams of one connection."] = None


class Http(Section, frozen=True, kw_only=True):
    """How the agent is served over HTTP and WebSocket."""

    path: Annotated[EndpointPath | None, "Path of the endpoint."] = None
    allowed_origins: Annotated[
        Origins | None, "Browser origins served besides loopback; `https://*.example.com` is a domain, `*` any origin."
    ] = None
    allowed_hosts: Annotated[
        Hosts | None, "Hosts the endpoint may be called by; unset checks nothing. Django applies its own rule."
    ] = None
    require_auth: Annotated[
        Flag | None, "With no user and no guard, serve loopback peers only; others are refused with 403."
    ] = None
    allow_stdio_mcp_servers: Annotated[
        Flag | None, "Let a remote client name MCP servers, which are commands that this machine runs."
    ] = None
    roots: Annotated[
        Directories | None, "Directories inside which the working directory of a remote client's session must lie."
    ] = None
    max_post_body_size: Annotated[
        Size | None, "Largest POST body and WebSocket message; only lowers `max-message-size`."
    ] = None
    keep_alive_interval: Annotated[Duration | None, "Time between comments on an idle event stream."] = None
    mailbox_capacity: Annotated[
        Number | None, "Events kept while nobody reads a stream; one more closes the connection."
    ] = None
    max_pending_sse_events: Annotated[
        Number | None, "Events queued for a reader; one more detaches it, the events are kept."
    ] = None
    max_web_socket_pending_frames: Annotated[Number | None, "Frames queued for a socket; one more closes it."] = None
    max_provisional_sessions: Annotated[
        Number | None, "Session streams opened before their session is known, for each connection."
    ] = None
    max_connections: Annotated[Number | None, "Connections open at once."] = None
    max_connections_per_principal: Annotated[Number | None, "Connections of one user open at once."] = None
    connection_idle_timeout: Annotated[
        Duration | None, "How long an HTTP connection lives with no stream, no turn and no request."
    ] = None
    shutdown_timeout: Annotated[PositiveDuration | None, "Bound of closing the endpoint."] = None
    web_socket_idle_timeout: Annotated[PositiveDuration | None, "Silence after which a socket is closed."] = None
    initialize_timeout: Annotated[PositiveDuration | None, "How long `initialize` may take."] = None
    listener: Listener = Listener()


class AgentTransport(Section, frozen=True, kw_only=True):
    """How the agent is reached."""

    type: Annotated[
        TransportType | None,
        "What is served; unset, the way the process was started decides, and a start that contradicts "
        "an explicit value fails. `http` and `websocket` are the same endpoint.",
    ] = None
    http: Http = Http()


class Backplane(Section, frozen=True, kw_only=True):
    """How the workers that serve one agent find each other's connections."""

    url: Annotated[
        Text | None,
        "Where workers meet: `memory:` (nowhere), `unix:/a/directory`, `redis://host:port/0` (or "
        "`rediss:`, `valkey:`, `valkeys:`); unset, the workers of one server find each other.",
    ] = None
    key: Annotated[Secret | None, "Key that authenticates messages between hosts; Redis needs one."] = None


class AcpAgentSettings(Settings, frozen=True, kw_only=True):
    """What can be set for an agent that is served; whatever is unset keeps the default of the part it is for.

    Made directly, an invalid value raises ``ValueError``; `from_mapping` and `load` raise
    `ConfigurationError` instead, with one line for every bad key.
    """

    default_prefix: ClassVar[str] = "acp.agent"
    defaults: ClassVar[tuple[Any, ...]] = (HostOptions(), RuntimeOptions(), EndpointOptions(), ListenerOptions())

    enabled: Annotated[Flag | None, "Serve an agent; false creates none, on any transport."] = None
    request_timeout: Annotated[Duration | None, "How long a client may take to answer a request."] = None
    interaction_timeout: Annotated[
        Duration | None, "How long a person may take to answer a permission request or an elicitation."
    ] = None
    cancel_grace_period: Annotated[Duration | None, "Time a handler has to finish after its turn was cancelled."] = None
    max_prompt_duration: Annotated[Duration | None, "How long one turn may take."] = None
    max_concurrent_requests: Annotated[
        Number | None, "Prompts, MCP and extension requests at once on one connection; the next is refused."
    ] = None
    sync_threads: Annotated[Number | None, "Threads of this process that run sync handlers."] = None
    drain_timeout: Annotated[
        Duration | None, "At end of input, time for turns to finish by themselves; 0 cancels them at once."
    ] = None
    abort_timeout: Annotated[Duration | None, "Time for cancelled turns to end before they are aborted."] = None
    session_idle_timeout: Annotated[Duration | None, "Age at which an unused session is forgotten."] = None
    detached_turn_timeout: Annotated[
        Duration | None, "How long a turn of an HTTP connection goes on with nobody reading its stream."
    ] = None
    max_message_size: Annotated[Size | None, "Largest message accepted, on every transport."] = None
    shutdown_on_transport_end: Annotated[
        Flag | None, "Stop the application when its only transport has ended; never for HTTP."
    ] = None
    handler_executor: Annotated[
        ExecutorName | None, "Where sync handlers run: `none` for own threads; unset, the framework's threads."
    ] = None
    session_store: Annotated[SessionStore | None, "What keeps sessions over a restart."] = None
    plugins: Annotated[
        Names | None, "Installed plugins to use, by name, or `all`; without any, none is looked for."
    ] = None
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
