"""Serve and drive Agent Client Protocol agents from a FastAPI application."""

from acp_fastapi.dependencies import ClientDep, SyncClientDep, TurnDep
from acp_fastapi.router import AcpFastAPI

__all__ = ["AcpFastAPI", "ClientDep", "SyncClientDep", "TurnDep"]
