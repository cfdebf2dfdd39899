"""Sessions kept for as long as the process lives."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final

import anyio
import msgspec

from acp_integration.errors import RequestError
from acp_integration.jsonrpc import INVALID_PARAMS
from acp_integration.store.protocol import Page, StoredSession
from acp_integration.store.tables import Entry
from acp_integration.store.transcript import Transcript, replay

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
        kept = _Kept(msgspec.structs.replace(_copied(session), updated_at=_now()))
        self._kept[session.id] = kept
        while len(self._kept) > self._most:
            del self._kept[next(iter(self._kept))]
        return MemoryJournal(kept, self._touch)

    async def open(self, session_id: str, owner: str | None) -> "tuple[StoredSession, MemoryJournal] | None":
        """Find a session of an owner and hold it from now on."""
        kept = self._kept.get(session_id)
        if kept is None or kept.session.owner != owner:
            return None
        kept.take_over()
        return _copied(kept.session), MemoryJournal(kept, self._touch)

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
            kept.take_over()

    def _touch(self, kept: "_Kept") -> None:
        if self._kept.pop(kept.session.id, None) is not None:
            self._kept[kept.session.id] = kept


class _Kept:
    """One session with all that was said in it; `holder` counts how often it was opened."""

    def __init__(self, session: StoredSession) -> None:
        self.session = session
        self.holder = 0
        self.turn = False
        self.transcript = Transcript(0)
        self._entries: dict[int, Entry] = {}

    def take_over(self) -> None:
        """Another one holds the session; a turn that is under way counts as cut."""
        self.holder += 1
        entries = self.entries()
        if self.turn and entries:
            self._entries[entries[-1].number] = msgspec.structs.replace(entries[-1], cut=True)
        self.turn = False

    def entries(self) -> Sequence[Entry]:
        """All that was said, oldest first."""
        gone, entries = self.transcript.take()
        for span in gone:
            for number in range(span.first + 1, span.last + 1):
                self._entries.pop(number, None)
        self._entries.update((entry.number, entry) for entry in entries)
        return [*self._entries.values()]


class MemoryJournal:
    """What one holder of a session writes to it."""

    congested: Final = False

    def __init__(self, kept: _Kept, touch: Callable[[_Kept], None]) -> None:
        self._kept = kept
        self._touch = touch
        self._holder = kept.holder
        self._taken_over: Callable[[], object] | None = None
        self._ended = anyio.Event()

    def put(self, update: bytes, leave: Callable[[], None]) -> None:
        """Keep an update and let it leave at once."""
        if self._holds():
            self._kept.transcript.add(update)
            leave()

    async def begin(self, prompt: Iterable[bytes], taken_over: Callable[[], object]) -> bool:
        """Keep a prompt, unless somebody else opened the session since."""
        if not self._holds():
            return False
        self._taken_over = taken_over
        self._ended = anyio.Event()
        self._kept.turn = True
        self._kept.transcript.prompt(prompt)
        return True

    async def end(self, changes: Mapping[str, Any]) -> None:
        """Keep what the turn changed of the session."""
        self._taken_over = None
        self._ended.set()
        if self._holds():
            self._kept.turn = False
            self._kept.transcript.end_message()
            await self.settle(changes)

    async def release(self) -> None:
        """Cancel a turn that is under way, and wait for its end."""
        if self._taken_over is not None:
            self._taken_over()
            await self._ended.wait()

    async def settle(self, changes: Mapping[str, Any] | None = None) -> None:
        """Keep what changed of the session beside its updates."""
        if changes and self._holds():
            copied = msgspec.json.decode(msgspec.json.encode(changes))
            self._kept.session = msgspec.structs.replace(self._kept.session, updated_at=_now(), **copied)
            self._touch(self._kept)

    async def history(self) -> Sequence[Mapping[str, Any]]:
        """All that was kept, oldest first."""
        return replay(self._kept.entries())

    def _holds(self) -> bool:
        if self._kept.holder == self._holder:
            return True
        taken_over, self._taken_over = self._taken_over, None
        if taken_over is not None:
            taken_over()
        return False


def _copied(session: StoredSession) -> StoredSession:
    """A session that shares no state with another one, as if it had been written and read."""
    return msgspec.structs.replace(session, state=msgspec.json.decode(msgspec.json.encode(session.state)))


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
