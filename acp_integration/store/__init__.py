"""What keeps sessions, so that a client finds them again."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from acp_integration.store.protocol import Page, SessionStore, StoredSession

if TYPE_CHECKING:
    from acp_integration.store.durable import DurableStore
    from acp_integration.store.memory import MemoryStore
    from acp_integration.store.opening import open_store
    from acp_integration.store.tables import Change, Entry, Held, Place, Span, Tables

__all__ = [
    "Change",
    "DurableStore",
    "Entry",
    "Held",
    "MemoryStore",
    "Page",
    "Place",
    "SessionStore",
    "Span",
    "StoredSession",
    "Tables",
    "open_store",
]

# Most agents keep no sessions, and those who wait for the start of one do not wait for the stores.
_HOMES = {
    "Change": "tables",
    "DurableStore": "durable",
    "Entry": "tables",
    "Held": "tables",
    "MemoryStore": "memory",
    "Place": "tables",
    "Span": "tables",
    "Tables": "tables",
    "open_store": "opening",
}


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(import_module(f"acp_integration.store.{_HOMES[name]}"), name)
    message = f"module {__name__!r} has no attribute {name!r}"
    raise AttributeError(message)
