"""Sessions through the ORM: every query names the owner or the holder, so nobody reaches another one's session."""

import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from functools import wraps
from typing import Any, Concatenate, Final, ParamSpec, TypeVar

import msgspec
from django.conf import settings
from django.db import DatabaseError, IntegrityError, connections, models, router, transaction
from django.utils import timezone

from acp_django.sessions.models import Entry as EntryRow
from acp_django.sessions.models import Session
from acp_integration.store import Change, Entry, Held, Place, StoredSession

P = ParamSpec("P")
T = TypeVar("T")

IDLE_SECONDS: Final = 30.0
"""After so long without a query, the connection is tried before it is used: the server may have dropped it."""
_LISTED: Final = ("id", "owner", "cwd", "directories", "title", "updated_at", "mode", "options")


def _connected(
    method: "Callable[Concatenate[OrmTables, P], T]",
) -> "Callable[Concatenate[OrmTables, P], T]":
    """Keep one connection for the thread of the store, and replace it when it broke."""

    @wraps(method)
    def guarded(self: "OrmTables", *args: P.args, **kwargs: P.kwargs) -> T:
        connection, now = connections[self.alias], time.monotonic()
        if now - self.used > IDLE_SECONDS and connection.connection is not None and not connection.is_usable():
            connection.close()
        self.used = now
        try:
            return method(self, *args, **kwargs)
        except DatabaseError:
            connection.close()
            raise

    return guarded


class OrmTables:
    """The tables of a session store in the project's database."""

    def __init__(self) -> None:
        self.used = time.monotonic()

    @property
    def alias(self) -> str:
        """The database that holds the sessions, as the project's routers say."""
        return router.db_for_write(Session)

    @_connected
    def create(self, session: StoredSession) -> int:
        """Keep a new session; returns its holder's number.

        Raises:
            ValueError: if there is a session with that id.
        """
        now = timezone.now()
        row = Session(
            id=session.id,
            owner=session.owner,
            cwd=session.cwd,
            directories=_json(list(session.additional_directories)),
            created_at=now,
            updated_at=now,
            **_columns({"title": session.title, "mode": session.mode}),
            **_columns({"options": session.options, "state": session.state}),
        )
        try:
            with transaction.atomic(self.alias):
                row.save(using=self.alias, force_insert=True)
        except IntegrityError:
            raise ValueError(f"There is a stored session {session.id!r}: a new one needs a new id") from None
        return row.holder

    @_connected
    def open(self, session_id: str, owner: str | None) -> Held | None:
        """Find a session of an owner and give it a new holder; a turn that was under way counts as cut."""
        with transaction.atomic(self.alias):
            found = self._sessions().filter(id=session_id, owner=owner)
            # Written first: a transaction that only read so far could not wait for another one's end.
            if not found.update(holder=models.F("holder") + 1):
                return None
            row = found.get()
            last = self._entries(session_id).aggregate(last=models.Max("number"))["last"]
            if row.turn:
                self._entries(session_id).filter(number=last).update(cut=True)
                found.update(turn=False)
        listed = [getattr(row, name) for name in _LISTED]
        return Held(_session(listed, row.state), row.holder, 0 if last is None else last + 1)

    @_connected
    def write(self, changes: Sequence[Change]) -> Sequence[bool]:
        """Write in one commit; False in the place of each change whose holder holds the session no more."""
        with transaction.atomic(self.alias):
            return [self._written(change) for change in changes]

    @_connected
    def entries(self, session_id: str) -> Sequence[Entry]:
        """The whole transcript, oldest first."""
        rows = self._entries(session_id).order_by("number").values_list("number", "kind", "update", "cut")
        return [Entry(number, kind, update.encode(), cut) for number, kind, update, cut in rows]  # type: ignore[arg-type]  # one of the kinds

    @_connected
    def page(self, owner: str | None, cwd: str | None, after: Place | None, size: int) -> Sequence[StoredSession]:
        """At most so many sessions of an owner, those that changed last first, without their state."""
        found = self._sessions().filter(owner=owner).order_by("-updated_at", "-id")
        if cwd is not None:
            found = found.filter(cwd=cwd)
        if after is not None:
            then = _moment(after.updated_at)
            found = found.filter(
                models.Q(updated_at__lt=then) | models.Q(updated_at=then, id__lt=after.session), updated_at__lte=then
            )
        return [_session(row, "{}") for row in found.values_list(*_LISTED)[:size]]

    @_connected
    def delete(self, session_id: str, owner: str | None) -> None:
        """Forget a session of an owner; one that is not there is no error."""
        self._sessions().filter(id=session_id, owner=owner).delete()

    def _sessions(self) -> "models.QuerySet[Session]":
        return Session.objects.using(self.alias)

    def _entries(self, session_id: str) -> "models.QuerySet[EntryRow]":
        return EntryRow.objects.using(self.alias).filter(session_id=session_id)

    def _written(self, change: Change) -> bool:
        columns = _columns(change.fields)
        if change.turn is not None:
            columns["turn"] = change.turn
        held = self._sessions().filter(id=change.session, holder=change.holder)
        if not held.update(updated_at=timezone.now(), **columns):
            return False
        for span in change.gone:
            self._entries(change.session).filter(number__range=span).delete()
        EntryRow.objects.using(self.alias).bulk_create(
            EntryRow(session_id=change.session, number=entry.number, kind=entry.kind, update=entry.update.decode())
            for entry in change.entries
        )
        return True


def _columns(fields: "dict[str, Any] | Any") -> dict[str, Any]:
    """Fields of a stored session as values of the columns with the same names."""
    return {name: _column(name, value) for name, value in fields.items()}


def _column(name: str, value: Any) -> Any:
    if name in {"options", "state"}:
        return _json(value)
    return value.replace("\0", "") if isinstance(value, str) else value  # PostgreSQL's texts hold no null character


def _session(row: Sequence[Any], state: str) -> StoredSession:
    session_id, owner, cwd, directories, title, updated_at, mode, options = row
    return StoredSession(
        id=session_id,
        owner=owner,
        cwd=cwd,
        additional_directories=msgspec.json.decode(directories),
        title=title,
        updated_at=_text(updated_at),
        mode=mode,
        options=msgspec.json.decode(options),
        state=msgspec.json.decode(state),
    )


def _json(value: Any) -> str:
    return msgspec.json.encode(value).decode()


def _text(moment: datetime) -> str:
    aware = timezone.make_aware(moment) if timezone.is_naive(moment) else moment
    return aware.astimezone(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")


def _moment(text: str) -> datetime:
    moment = datetime.fromisoformat(text)
    return moment if settings.USE_TZ else timezone.make_naive(moment)
