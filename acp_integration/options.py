"""The numbers a runtime and an endpoint work with, each default decided here and nowhere else.

Durations are seconds, sizes are bytes; None means no limit. Light on purpose: serving needs no settings classes.
"""

from typing import Final

import msgspec

MIB: Final = 1024 * 1024
DEFAULT_REQUEST_TIMEOUT: Final = 60.0


class RuntimeOptions(msgspec.Struct, frozen=True, kw_only=True):
    """What bounds an agent on one connection."""

    request_timeout: float | None = DEFAULT_REQUEST_TIMEOUT
    interaction_timeout: float | None = None
    cancel_grace_period: float | None = 5.0
    max_prompt_duration: float | None = None
    max_concurrent_requests: int = 32
    max_waiting_controls: int = 256
    sync_threads: int = 64
    drain_timeout: float = 60.0
    abort_timeout: float = 5.0
    session_idle_timeout: float | None = None
    max_message_size: int = 32 * MIB


class BackplaneOptions(msgspec.Struct, frozen=True, kw_only=True):
    """How the workers that serve one agent find each other's connections; both may hold a secret."""

    url: str | None = None
    key: str | None = None

    def __repr__(self) -> str:
        return "BackplaneOptions(...)"


class EndpointOptions(msgspec.Struct, frozen=True, kw_only=True):
    """What bounds an endpoint that serves an agent over HTTP and WebSocket."""

    path: str = "/acp"
    allowed_origins: tuple[str, ...] = ()
    allowed_hosts: tuple[str, ...] | None = None
    require_auth: bool = True
    allow_stdio_mcp_servers: bool = False
    roots: tuple[str, ...] | None = None
    max_message_size: int = 32 * MIB
    max_post_body_size: int | None = None
    keep_alive_interval: float | None = 15.0
    mailbox_capacity: int = 1024
    max_pending_sse_events: int = 1024
    max_web_socket_pending_frames: int = 1024
    max_provisional_sessions: int = 64
    max_connections: int = 1000
    max_connections_per_principal: int = 100
    connection_idle_timeout: float | None = 300.0
    detached_turn_timeout: float | None = 300.0
    shutdown_timeout: float = 5.0
    web_socket_idle_timeout: float = 1800.0
    initialize_timeout: float = 30.0
    workers: BackplaneOptions = BackplaneOptions()


class ListenerOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Where an endpoint's own listener binds; host None is loopback only, port 0 any free port."""

    host: str | None = None
    port: int = 8080
    max_concurrent_streams_per_connection: int = 1024


class HostOptions(msgspec.Struct, frozen=True, kw_only=True):
    """What the framework that holds an agent acts on."""

    enabled: bool = True
    shutdown_on_transport_end: bool = True
    handler_executor: str | None = None
    session_store: str = "none"
    plugins: tuple[str, ...] = ()


class ClientOptions(msgspec.Struct, frozen=True, kw_only=True):
    """What bounds a client and the transport it speaks over."""

    request_timeout: float | None = DEFAULT_REQUEST_TIMEOUT
    prompt_timeout: float | None = None
    initialize_timeout: float = 30.0
    connect_timeout: float = 10.0
    max_message_size: int = 32 * MIB
    inherit_environment: bool = True

    @property
    def close_timeout(self) -> float:
        """How long a graceful close may take, in seconds: the request timeout plus ten."""
        return (self.request_timeout or DEFAULT_REQUEST_TIMEOUT) + 10.0
