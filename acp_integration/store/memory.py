"""Sessions kept for as long as the process lives."""

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final

import msgspec

from acp_integration.errors import RequestError
from acp_integration.jsonrpc import INVALID_PARAMS
from acp_integration.store.protocol import Page, StoredSession

PAGE_SIZE: Final = 50
MOST_SESSIONS: Final = 1000


class MemoryStore:
    """Keeps the sessions that changed last; of more than `most_sessions` the oldest are forgotten."""

    def __init__(self, *, page_size: int = PAGE_SIZE, most_sessions: int = MOST_SESSIONS) -> None:
        self._page_size = page_size
        self._most = most_sessions
        self._kept: dict[str, _Kept] = {}  # the one that changed last is the last

    async def create(self, session: StoredSession) -> "MemoryJournal":
        """Keep a new session; who created it holds it."""
        kept = _Kept(dataclasses.replace(session, updated_at=_now()))
        self._kept[session.id] = kept
        while len(self._kept) > self._most:
            del self._kept[next(iter(self._kept))]
        return MemoryJournal(kept, self._touch)

    async def open(self, session_id: str, owner: str | None) -> "tuple[StoredSession, MemoryJournal] | None":
        """Find a session of an owner and hold it from now on."""
        kept = self._kept.get(session_id)
        if kept is None or kept.session.owner != owner:
            return None
        kept.holder += 1
        return kept.session, MemoryJournal(kept, self._touch)

    async def page(self, owner: str | None, *, cwd: str | None, cursor: str | None) -> Page:
        """One page of an owner's sessions, newest first; a cursor is the id of the last one before."""
        found = [
            kept.session
            for kept in reversed(self._kept.values())
            if kept.session.owner == owner and cwd in (None, kept.session.cwd)
        ]
        start = 0
        if cursor is not None:
            start = next((place + 1 for place, session in enumerate(found) if session.id == cursor), -1)
        if start < 0:
            raise RequestError(INVALID_PARAMS, "Invalid params: params.cursor is none that this agent gave")
        page = found[start : start + self._page_size]
        return Page(page, page[-1].id if start + self._page_size < len(found) else None)

    async def delete(self, session_id: str, owner: str | None) -> None:
        """Forget a session of an owner; one that is not there is no error."""
        kept = self._kept.get(session_id)
        if kept is not None and kept.session.owner == owner:
            del self._kept[session_id]
            kept.holder += 1

    def _touch(self, kept: "_Kept") -> None:
        if self._kept.pop(kept.session.id, None) is not None:
            self._kept[kept.session.id] = kept


class _Kept:
    """One session with all that was said in it; `holder` counts how often it was opened."""

    __slots__ = ("holder", "session", "updates")

    def __init__(self, session: StoredSession) -> None:
        self.session = session
        self.updates: list[bytes] = []
        self.holder = 0


class MemoryJournal:
    """What one holder of a session writes to it."""

    def __init__(self, kept: _Kept, touch: Callable[[_Kept], None]) -> None:
        self._kept = kept
        self._touch = touch
        self._holder = kept.holder

    def put(self, update: bytes, leave: Callable[[], None]) -> None:
        """Keep an update and let it leave at once."""
        if self._kept.holder == self._holder:
            self._kept.updates.append(update)
        leave()

    async def settle(self, changes: Mapping[str, Any]) -> None:
        """Keep what changed of the session beside its updates."""
        if self._kept.holder == self._holder:
            copied = msgspec.json.decode(msgspec.json.encode(changes))
            self._kept.session = dataclasses.replace(self._kept.session, updated_at=_now(), **copied)
            self._touch(self._kept)

    async def is_holder(self) -> bool:
        """Whether nobody else opened the session since."""
        return self._kept.holder == self._holder

    async def history(self) -> Sequence[Mapping[str, Any]]:
        """All that was kept, oldest first."""
        return [msgspec.json.decode(update) for update in self._kept.updates]


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
