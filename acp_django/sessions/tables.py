"""Sessions through the ORM: every query names the owner or the holder, so nobody reaches another one's session."""

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any, Final

import msgspec
from django.conf import settings
from django.db import DatabaseError, IntegrityError, connections, models, router, transaction
from django.utils import timezone

from acp_django.sessions.models import Entry as EntryRow
from acp_django.sessions.models import Session
from acp_integration.store import Change, Entry, Held, Place, StoredSession

IDLE_SECONDS: Final = 30.0
"""After so long without a query, the connection is tried before it is used: the server may have dropped it."""
_LISTED: Final = ("id", "owner", "cwd", "directories", "title", "updated_at", "mode", "options")


class OrmTables:
    """The tables of a session store in the project's database, on one connection of the store's thread."""

    def __init__(self) -> None:
        self._used = time.monotonic()

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
            with self._transaction() as alias:
                row.save(using=alias, force_insert=True)
        except IntegrityError:
            raise ValueError(f"There is a stored session {session.id!r}: a new one needs a new id") from None
        return row.holder

    def open(self, session_id: str, owner: str | None) -> Held | None:
        """Find a session of an owner and give it a new holder; a turn that was under way counts as cut."""
        with self._transaction() as alias:
            found = Session.objects.using(alias).filter(id=session_id, owner=owner)
            # Written first: a transaction that only read so far could not wait for another one's end.
            if not found.update(holder=models.F("holder") + 1):
                return None
            row, entries = found.get(), _entries(alias, session_id)
            last = entries.aggregate(last=models.Max("number"))["last"]
            if row.turn:
                entries.filter(number=last).update(cut=True)
                found.update(turn=False)
        listed = [getattr(row, name) for name in _LISTED]
        return Held(_session(listed, row.state), row.holder, 0 if last is None else last + 1)

    def write(self, changes: Sequence[Change]) -> Sequence[bool]:
        """Write in one commit; False in the place of each change whose holder holds the session no more."""
        with self._transaction() as alias:
            return [_written(alias, change) for change in changes]

    def entries(self, session_id: str) -> Sequence[Entry]:
        """The whole transcript, oldest first."""
        with self._connected() as alias:
            rows = _entries(alias, session_id).order_by("number").values_list("number", "kind", "update", "cut")
            return [Entry(number, kind, update.encode(), cut) for number, kind, update, cut in rows]  # type: ignore[arg-type]  # one of the kinds

    def page(self, owner: str | None, cwd: str | None, after: Place | None, size: int) -> Sequence[StoredSession]:
        """At most so many sessions of an owner, those that changed last first, without their state."""
        with self._connected() as alias:
            found = Session.objects.using(alias).filter(owner=owner).order_by("-updated_at", "-id")
            if cwd is not None:
                found = found.filter(cwd=cwd)
            if after is not None:
                then = _moment(after.updated_at)
                earlier = models.Q(updated_at__lt=then) | models.Q(updated_at=then, id__lt=after.session)
                found = found.filter(earlier, updated_at__lte=then)  # the second so that the index is entered there
            return [_session(row, "{}") for row in found.values_list(*_LISTED)[:size]]

    def delete(self, session_id: str, owner: str | None) -> None:
        """Forget a session of an owner; one that is not there is no error."""
        with self._transaction() as alias:
            Session.objects.using(alias).filter(id=session_id, owner=owner).delete()

    @contextmanager
    def _transaction(self) -> Iterator[str]:
        with self._connected() as alias, transaction.atomic(alias):
            yield alias

    @contextmanager
    def _connected(self) -> Iterator[str]:
        """The database that the project's routers name; a connection that broke is replaced."""
        alias, now = router.db_for_write(Session), time.monotonic()
        connection = connections[alias]
        if now - self._used > IDLE_SECONDS and connection.connection is not None and not connection.is_usable():
            connection.close()
        self._used = now
        try:
            yield alias
        except IntegrityError:
            raise  # the connection is fine
        except DatabaseError:
            connection.close()
            raise


def _entries(alias: str, session_id: str) -> "models.QuerySet[EntryRow]":
    return EntryRow.objects.using(alias).filter(session_id=session_id)


def _written(alias: str, change: Change) -> bool:
    columns = _columns(change.fields)
    if change.turn is not None:
        columns["turn"] = change.turn
    held = Session.objects.using(alias).filter(id=change.session, holder=change.holder)
    if not held.update(updated_at=timezone.now(), **columns):
        return False
    for span in change.gone:
        _entries(alias, change.session).filter(number__range=span).delete()
    EntryRow.objects.using(alias).bulk_create(
        EntryRow(session_id=change.session, number=entry.number, kind=entry.kind, update=entry.update.decode())
        for entry in change.entries
    )
    return True


def _columns(fields: Mapping[str, Any]) -> dict[str, Any]:
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
