"""Sessions in one SQLite file, which several processes may share."""

import os
import sqlite3
import time
import weakref
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import msgspec

from acp_integration.store.protocol import StoredSession
from acp_integration.store.schema import migrate
from acp_integration.store.tables import Change, Entry, Held, Place

BUSY_SECONDS: Final = 20.0
"""How long a commit waits for another process to finish its own."""

_LISTED: Final = "id, owner, cwd, directories, title, updated_at, mode, options"
_PAGE: Final = f"SELECT {_LISTED} FROM session WHERE owner IS :owner AND (updated_at, id) < (:moment, :id)"  # noqa: S608  # no value in it
_NEWEST: Final = " ORDER BY updated_at DESC, id DESC LIMIT :size"
_OF_DIRECTORY: Final = " AND cwd = :cwd"
_FIRST_PAGE: Final = Place("~", "")  # behind every moment, and so behind no session
_SETS: Final = {
    "title": "UPDATE session SET title = ? WHERE id = ?",
    "mode": "UPDATE session SET mode = ? WHERE id = ?",
    "options": "UPDATE session SET options = ? WHERE id = ?",
    "state": "UPDATE session SET state = ? WHERE id = ?",
}
_IN_JSON: Final = frozenset({"options", "state"})


class SqliteTables:
    """The tables of a session store in one SQLite file, made with its folder on first use, for its user alone."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._path = os.fspath(path)
        self._opened: sqlite3.Connection | None = None

    def create(self, session: StoredSession) -> int:
        """Keep a new session; returns its holder's number.

        Raises:
            ValueError: if there is a session with that id.
        """
        now = _now()
        row = (
            session.id,
            session.owner,
            session.cwd,
            _json(list(session.additional_directories)),
            session.title,
            now,
            now,
            session.mode,
            _json(session.options),
            _json(session.state),
        )
        with self._writing() as connection:
            try:
                connection.execute(
                    "INSERT INTO session (id, owner, cwd, directories, title, created_at, updated_at, mode, options,"
                    " state) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                    row,
                )
            except sqlite3.IntegrityError:
                raise ValueError(f"There is a stored session {session.id!r}: a new one needs a new id") from None
        return 1

    def open(self, session_id: str, owner: str | None) -> Held | None:
        """Find a session of an owner and give it a new holder; a turn that was under way counts as cut."""
        with self._writing() as connection:
            row = connection.execute(
                f"SELECT {_LISTED}, state, holder, turn FROM session WHERE id = ? AND owner IS ?",  # noqa: S608  # columns
                (session_id, owner),
            ).fetchone()
            if row is None:
                return None
            *listed, state, holder, turn = row
            newest = connection.execute("SELECT max(number) FROM entry WHERE session = ?", (session_id,))
            (last,) = newest.fetchone()
            if turn:
                connection.execute("UPDATE entry SET cut = 1 WHERE session = ? AND number = ?", (session_id, last))
            connection.execute("UPDATE session SET holder = ?, turn = 0 WHERE id = ?", (holder + 1, session_id))
        session = _session(listed, msgspec.json.decode(state))
        return Held(session, holder + 1, 0 if last is None else last + 1)

    def write(self, changes: Sequence[Change]) -> Sequence[bool]:
        """Write in one commit; False in the place of each change whose holder holds the session no more."""
        with self._writing() as connection:
            now = _now()
            return [_written(connection, change, now) for change in changes]

    def entries(self, session_id: str) -> Sequence[Entry]:
        """The whole transcript, oldest first."""
        rows = self._connection().execute(
            "SELECT number, kind, body, cut FROM entry WHERE session = ? ORDER BY number", (session_id,)
        )
        return [Entry(number, kind, body, bool(cut)) for number, kind, body, cut in rows]

    def page(self, owner: str | None, cwd: str | None, after: Place | None, size: int) -> Sequence[StoredSession]:
        """At most so many sessions of an owner, those that changed last first, without their state."""
        moment, session_id = after or _FIRST_PAGE
        query = _PAGE + (_OF_DIRECTORY if cwd is not None else "") + _NEWEST
        values = {"owner": owner, "cwd": cwd, "moment": moment, "id": session_id, "size": size}
        return [_session(row, {}) for row in self._connection().execute(query, values)]

    def delete(self, session_id: str, owner: str | None) -> None:
        """Forget a session of an owner; one that is not there is no error."""
        with self._writing() as connection:
            connection.execute("DELETE FROM session WHERE id = ? AND owner IS ?", (session_id, owner))

    @contextmanager
    def _writing(self) -> Iterator[sqlite3.Connection]:
        connection = self._connection()
        with _transaction(connection):
            yield connection

    def _connection(self) -> sqlite3.Connection:
        if self._opened is None:
            connection = _connected(self._path)
            weakref.finalize(self, connection.close)
            with _transaction(connection):
                migrate(connection, self._path)
            self._opened = connection
        return self._opened


@contextmanager
def _transaction(connection: sqlite3.Connection) -> Iterator[None]:
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
    except BaseException:
        connection.execute("ROLLBACK")
        raise
    connection.execute("COMMIT")


def _connected(path: str) -> sqlite3.Connection:
    Path(path).parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    os.close(os.open(path, os.O_CREAT | os.O_RDWR, 0o600))  # the files beside it get the mode of the first
    connection = sqlite3.connect(path, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False)
    _use_write_ahead_log(connection)
    # What was committed outlives this process, whatever ends it; only a power failure can take the last commits.
    connection.execute("PRAGMA synchronous = NORMAL")
    connection.execute("PRAGMA foreign_keys = ON")
    return connection


def _use_write_ahead_log(connection: sqlite3.Connection) -> None:
    """Readers and the writer of any process do not wait for each other; SQLite does not wait to switch to this mode."""
    until = time.monotonic() + BUSY_SECONDS
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL")
        except sqlite3.OperationalError:
            if time.monotonic() >= until:
                raise
            time.sleep(0.01)
        else:
            return


def _written(connection: sqlite3.Connection, change: Change, now: str) -> bool:
    session = change.session
    guard = (now, session, change.holder)
    if not connection.execute("UPDATE session SET updated_at = ? WHERE id = ? AND holder = ?", guard).rowcount:
        return False
    connection.executemany(
        "DELETE FROM entry WHERE session = ? AND number BETWEEN ? AND ?", [(session, *span) for span in change.gone]
    )
    connection.executemany(
        "INSERT INTO entry (session, number, kind, body) VALUES (?, ?, ?, ?)",
        [(session, entry.number, entry.kind, entry.update) for entry in change.entries],
    )
    for name, value in change.fields.items():
        connection.execute(_SETS[name], (_json(value) if name in _IN_JSON else value, session))
    if change.turn is not None:
        connection.execute("UPDATE session SET turn = ? WHERE id = ?", (change.turn, session))
    return True


def _session(row: Sequence[Any], state: Mapping[str, Any]) -> StoredSession:
    session_id, owner, cwd, directories, title, updated_at, mode, options = row
    return StoredSession(
        id=session_id,
        owner=owner,
        cwd=cwd,
        additional_directories=msgspec.json.decode(directories),
        title=title,
        updated_at=updated_at,
        mode=mode,
        options=msgspec.json.decode(options),
        state=state,
    )


def _json(value: Any) -> str:
    return msgspec.json.encode(value).decode()


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")
