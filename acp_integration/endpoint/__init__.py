"""Serves an agent over Streamable HTTP and WebSocket as a raw ASGI application."""

from acp_integration.endpoint.admission import CALLER_KEY
from acp_integration.endpoint.application import EndpointApplication
from acp_integration.endpoint.asgi import AcpEndpoint

__all__ = ["CALLER_KEY", "AcpEndpoint", "EndpointApplication"]
