"""What moves frames between two peers: standard streams, memory, a child process, a WebSocket, HTTP."""

from acp_integration.transports.memory import memory_transport_pair
from acp_integration.transports.selection import select_client_transport
from acp_integration.transports.stdio import stdio_transport
from acp_integration.transports.transport import Transport

__all__ = ["Transport", "memory_transport_pair", "select_client_transport", "stdio_transport"]
