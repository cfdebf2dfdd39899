"""What a handler holds: its turn, its session, the client at the other end."""

from acp_integration.context.ambient import current_turn, publish
from acp_integration.context.blocking import SyncPromptContext
from acp_integration.context.session import AcpSession
from acp_integration.context.turn import PromptContext

__all__ = ["AcpSession", "PromptContext", "SyncPromptContext", "current_turn", "publish"]
