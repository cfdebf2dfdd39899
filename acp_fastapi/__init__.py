"""Serve and drive Agent Client Protocol agents from a FastAPI application."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from acp_fastapi.dependencies import ClientDep, SyncClientDep, TurnDep
    from acp_fastapi.router import AcpFastAPI

__all__ = ["AcpFastAPI", "ClientDep", "SyncClientDep", "TurnDep"]

# `python -m acp_fastapi` sees to its import path and its standard streams before FastAPI is imported.
_HOMES = {
    "AcpFastAPI": "router",
    "ClientDep": "dependencies",
    "SyncClientDep": "dependencies",
    "TurnDep": "dependencies",
}


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        value = getattr(import_module(f"acp_fastapi.{_HOMES[name]}"), name)
        globals()[name] = value
        return value
    message = f"module {__name__!r} has no attribute {name!r}"
    raise AttributeError(message)
