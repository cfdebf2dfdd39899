"""The client: drives any agent over any transport."""

from acp_integration.client.builder import ClientBuilder, build_client
from acp_integration.client.client import AcpClient
from acp_integration.client.prompts import PromptHandle, PromptResult
from acp_integration.client.session import ClientSession
from acp_integration.client.stream import PromptStream
from acp_integration.client.sync import SyncAcpClient, SyncPromptHandle, SyncSession

__all__ = [
    "AcpClient",
    "ClientBuilder",
    "ClientSession",
    "PromptHandle",
    "PromptResult",
    "PromptStream",
    "SyncAcpClient",
    "SyncPromptHandle",
    "SyncSession",
    "build_client",
]
