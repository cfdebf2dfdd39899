"""What a handler holds: its turn, its session, the client at the other end."""

from acp_integration.context.ambient import current_turn, publish
from acp_integration.context.blocking import SyncPromptContext
from acp_integration.context.blocking_session import SyncAcpSession
from acp_integration.context.client import ConnectedClient
from acp_integration.context.elicitation import Elicitation
from acp_integration.context.permission import Permission
from acp_integration.context.session import AcpSession
from acp_integration.context.turn import PromptContext

__all__ = [
    "AcpSession",
    "ConnectedClient",
    "Elicitation",
    "Permission",
    "PromptContext",
    "SyncAcpSession",
    "SyncPromptContext",
    "current_turn",
    "publish",
]
