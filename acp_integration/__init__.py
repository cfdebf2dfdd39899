"""The Agent Client Protocol for Python applications: serve an agent, or drive one."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from acp_integration.agents import acp_agent
    from acp_integration.client import AcpClient, SyncAcpClient
    from acp_integration.context import AcpSession, PromptContext, SyncPromptContext, current_turn, publish
    from acp_integration.errors import AcpError, RequestError
    from acp_integration.handlers import on
    from acp_integration.settings import AcpAgentSettings, AcpClientSettings

__all__ = [
    "AcpAgentSettings",
    "AcpClient",
    "AcpClientSettings",
    "AcpError",
    "AcpSession",
    "PromptContext",
    "RequestError",
    "SyncAcpClient",
    "SyncPromptContext",
    "acp_agent",
    "current_turn",
    "on",
    "publish",
]

# Each name costs only what it needs: an editor waits for the start of an agent.
_HOMES = {
    "AcpAgentSettings": "settings",
    "AcpClient": "client",
    "AcpClientSettings": "settings",
    "AcpError": "errors",
    "AcpSession": "context",
    "PromptContext": "context",
    "RequestError": "errors",
    "SyncAcpClient": "client",
    "SyncPromptContext": "context",
    "acp_agent": "agents",
    "current_turn": "context",
    "on": "handlers",
    "publish": "context",
}


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        value = getattr(import_module(f"acp_integration.{_HOMES[name]}"), name)
        globals()[name] = value
        return value
    message = f"module {__name__!r} has no attribute {name!r}"
    raise AttributeError(message)
