"""The lives of what serves or drives an agent: start, stop in time, termination."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from acp_integration.hosts.agent import AcpAgentHost
from acp_integration.hosts.host import AcpHost

if TYPE_CHECKING:
    from acp_integration.hosts.client import AcpClientHost
    from acp_integration.hosts.endpoint import AcpEndpointHost
    from acp_integration.hosts.listener import AcpListenerHost

__all__ = ["AcpAgentHost", "AcpClientHost", "AcpEndpointHost", "AcpHost", "AcpListenerHost"]

# The endpoint is below its hosts and above the taps of this package, so its hosts are loaded when they are asked for;
# the client's is too, because an application that serves an agent needs no client.
_HOMES = {"AcpClientHost": "client", "AcpEndpointHost": "endpoint", "AcpListenerHost": "listener"}


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        value = getattr(import_module(f"acp_integration.hosts.{_HOMES[name]}"), name)
        globals()[name] = value
        return value
    message = f"module {__name__!r} has no attribute {name!r}"
    raise AttributeError(message)
