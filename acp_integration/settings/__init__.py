"""What can be set: immutable settings in which everything is unset until somebody sets it."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from acp_integration.settings.agent import AcpAgentSettings, AgentTransport, Backplane, Http, Listener
    from acp_integration.settings.client import (
        AcpClientSettings,
        Capabilities,
        ClientHttp,
        ClientTransport,
        Stdio,
        WebSocket,
    )

__all__ = [
    "AcpAgentSettings",
    "AcpClientSettings",
    "AgentTransport",
    "Backplane",
    "Capabilities",
    "ClientHttp",
    "ClientTransport",
    "Http",
    "Listener",
    "Stdio",
    "WebSocket",
]

# An agent that starts does not wait for the settings of a client.
_OF_AGENT = {"AcpAgentSettings", "AgentTransport", "Backplane", "Http", "Listener"}


def __getattr__(name: str) -> Any:
    if name in __all__:
        return getattr(import_module(f"{__name__}.{'agent' if name in _OF_AGENT else 'client'}"), name)
    message = f"module {__name__!r} has no attribute {name!r}"
    raise AttributeError(message)
