"""The Agent Client Protocol for Python applications: serve an agent, or drive one."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from acp_integration.settings import AcpAgentSettings, AcpClientSettings

__all__ = ["AcpAgentSettings", "AcpClientSettings"]

_SETTINGS = ("AcpAgentSettings", "AcpClientSettings")


def __getattr__(name: str) -> Any:
    if name in _SETTINGS:
        # The settings library costs as much to import as all the rest, and a process with nothing set needs none of it.
        return getattr(import_module("acp_integration.settings"), name)
    message = f"module {__name__!r} has no attribute {name!r}"
    raise AttributeError(message)
