"""What keeps sessions, so that a client finds them again."""

from acp_integration.store.memory import MemoryStore
from acp_integration.store.protocol import Page, SessionStore, StoredSession

__all__ = ["MemoryStore", "Page", "SessionStore", "StoredSession"]
