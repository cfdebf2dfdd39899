"""Serves an agent over Streamable HTTP and WebSocket as a raw ASGI application."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from acp_integration.endpoint.admission import CALLER_KEY

if TYPE_CHECKING:
    from acp_integration.endpoint.application import EndpointApplication
    from acp_integration.endpoint.asgi import AcpEndpoint

__all__ = ["CALLER_KEY", "AcpEndpoint", "EndpointApplication"]

# A process that serves stdio imports what mounts the endpoint, and does not wait for what serves it.
_HOMES = {"AcpEndpoint": "asgi", "EndpointApplication": "application"}


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    message = f"module {__name__!r} has no attribute {name!r}"
    raise AttributeError(message)
