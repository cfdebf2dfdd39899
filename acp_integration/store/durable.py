"""A session store over blocking tables: the same rules for every database."""

import base64
import binascii
from datetime import datetime
from typing import Final

import msgspec

from acp_integration.errors import RequestError
from acp_integration.jsonrpc import INVALID_PARAMS
from acp_integration.store.journal import DurableJournal
from acp_integration.store.protocol import Page, StoredSession
from acp_integration.store.tables import Held, Place, Tables
from acp_integration.store.thread import StoreThread

PAGE_SIZE: Final = 50


class DurableStore:
    """Keeps sessions in tables, which one thread of its own reads and writes; nothing blocks the loop.

    Args:
        tables: the database, opened when it is first used.
        page_size: how many sessions a page lists.
    """

    def __init__(self, tables: Tables, *, page_size: int = PAGE_SIZE) -> None:
        self._tables = tables
        self._thread = StoreThread(tables)
        self._page_size = page_size

    async def create(self, session: StoredSession) -> DurableJournal:
        """Keep a new session; who created it holds it.

        Raises:
            ValueError: if there is a session with that id.
        """
        holder = await self._thread.run(self._tables.create, session)
        return DurableJournal(self._thread, Held(session, holder, 0))

    async def open(self, session_id: str, owner: str | None) -> tuple[StoredSession, DurableJournal] | None:
        """Find a session of an owner and hold it from now on; whoever held it before does so no more."""
        held = await self._thread.run(self._tables.open, session_id, owner)
        return None if held is None else (held.session, DurableJournal(self._thread, held))

    async def page(self, owner: str | None, *, cwd: str | None, cursor: str | None) -> Page:
        """One page of an owner's sessions, of one directory if it is given.

        Raises:
            RequestError: -32602 for a cursor that no page gave.
        """
        after = None if cursor is None else _place(cursor)
        found = await self._thread.run(self._tables.page, owner, cwd, after, self._page_size + 1)
        page = found[: self._page_size]
        return Page(page, _cursor(page[-1]) if len(found) > len(page) else None)

    async def delete(self, session_id: str, owner: str | None) -> None:
        """Forget a session of an owner; one that is not there is no error."""
        await self._thread.run(self._tables.delete, session_id, owner)


def _cursor(session: StoredSession) -> str:
    place = msgspec.json.encode((session.updated_at, session.id))
    return base64.urlsafe_b64encode(place).decode("ascii")


def _place(cursor: str) -> Place:
    try:
        place = msgspec.json.decode(base64.b64decode(cursor, altchars=b"-_", validate=True), type=tuple[str, str])
        datetime.fromisoformat(place[0])
    except (binascii.Error, ValueError, msgspec.DecodeError):
        raise RequestError(INVALID_PARAMS, "Invalid params: params.cursor is none that this agent gave") from None
    return Place(*place)
