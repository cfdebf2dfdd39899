"""What keeps sessions, so that a client finds them again."""

from acp_integration.store.durable import DurableStore
from acp_integration.store.memory import MemoryStore
from acp_integration.store.opening import open_store
from acp_integration.store.protocol import Page, SessionStore, StoredSession
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
