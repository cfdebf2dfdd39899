"""What can be set: immutable settings in which everything is unset until somebody sets it."""

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
