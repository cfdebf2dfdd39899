"""Checks the limits of an endpoint when it is made, all of them at once."""

from typing import Final

from acp_integration.errors import ConfigurationError
from acp_integration.options import EndpointOptions

_POSITIVE: Final = {
    "max_message_size": "acp.agent.max-message-size",
    "max_post_body_size": "acp.agent.transport.http.max-post-body-size",
    "keep_alive_interval": "acp.agent.transport.http.keep-alive-interval",
    "mailbox_capacity": "acp.agent.transport.http.mailbox-capacity",
    "max_pending_sse_events": "acp.agent.transport.http.max-pending-sse-events",
    "max_web_socket_pending_frames": "acp.agent.transport.http.max-web-socket-pending-frames",
    "max_provisional_sessions": "acp.agent.transport.http.max-provisional-sessions",
    "max_connections": "acp.agent.transport.http.max-connections",
    "max_connections_per_principal": "acp.agent.transport.http.max-connections-per-principal",
    "connection_idle_timeout": "acp.agent.transport.http.connection-idle-timeout",
    "detached_turn_timeout": "acp.agent.detached-turn-timeout",
    "shutdown_timeout": "acp.agent.transport.http.shutdown-timeout",
    "web_socket_idle_timeout": "acp.agent.transport.http.web-socket-idle-timeout",
    "initialize_timeout": "acp.agent.transport.http.initialize-timeout",
}
"""What must be positive where it is set, and the key that sets it."""


def validated(options: EndpointOptions) -> EndpointOptions:
    """The options, if they make sense.

    Raises:
        ConfigurationError: with one line for each limit that makes no sense.
    """
    problems = [
        f"{key} must be positive"
        for name, key in _POSITIVE.items()
        if (value := getattr(options, name)) is not None and value <= 0
    ]
    if problems:
        raise ConfigurationError(*problems)
    return options
