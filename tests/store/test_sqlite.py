"""The SQLite file: made on first use, for its user alone; old ones are brought up to date, newer ones refused."""

import sqlite3
import sys
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest

from acp_integration.errors import ConfigurationError
from acp_integration.store import Change, DurableStore, Entry, Held, MemoryStore, Place, StoredSession, open_store
from acp_integration.store.schema import VERSIONS
from acp_integration.store.sqlite import SqliteTables
from acp_integration.store.transcript import replay

UPDATE = b'{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"%d"}}'


def session(name: str, owner: str | None = None, cwd: str = "/") -> StoredSession:
    return StoredSession(id=name, owner=owner, cwd=cwd)


def change(name: str, holder: int, *numbers: int, **more: Any) -> Change:
    entries = [Entry(number, "update", UPDATE % number) for number in numbers]
    return Change(session=name, holder=holder, entries=entries, **more)


def test_nothing_is_made_before_the_first_use_and_then_for_its_user_alone(database: Path):
    tables = SqliteTables(database)
    assert not database.parent.exists()
    tables.create(session("one"))
    assert database.parent.stat().st_mode & 0o777 == 0o700
    assert {path.name: path.stat().st_mode & 0o777 for path in database.parent.iterdir()} == {
        "sessions.db": 0o600,
        "sessions.db-wal": 0o600,
        "sessions.db-shm": 0o600,
    }


def test_a_file_of_a_newer_release_is_refused_and_left_alone(database: Path):
    SqliteTables(database).create(session("one"))
    with closing(sqlite3.connect(database)) as connection:
        connection.execute(f"PRAGMA user_version = {len(VERSIONS) + 1}")
    tables = SqliteTables(database)
    for _ in range(2):
        with pytest.raises(ConfigurationError, match="upgrade"):
            tables.create(session("two"))
    with closing(sqlite3.connect(database)) as connection:
        assert connection.execute("SELECT count(*) FROM session").fetchone() == (1,)


def test_an_empty_file_is_brought_to_the_newest_version(database: Path):
    database.parent.mkdir()
    database.touch()
    SqliteTables(database).create(session("one"))
    with closing(sqlite3.connect(database)) as connection:
        assert connection.execute("PRAGMA user_version").fetchone() == (len(VERSIONS),)
        assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)


def test_only_the_holder_writes_and_no_number_is_written_twice(database: Path):
    tables = SqliteTables(database)
    first = tables.create(session("one"))
    assert tables.write([change("one", first, 0, 1), change("none", 1, 0)]) == [True, False]
    held = tables.open("one", None)
    assert held is not None
    assert held.number == 2
    assert tables.write([change("one", first, 2), change("one", held.holder, 2)]) == [False, True]
    with pytest.raises(sqlite3.IntegrityError):
        tables.write([change("one", held.holder, 2)])
    assert [entry.number for entry in tables.entries("one")] == [0, 1, 2]


def test_a_turn_that_was_under_way_is_marked_cut_once(database: Path):
    tables = SqliteTables(database)
    tables.write([change("one", tables.create(session("one")), 0, turn=True)])
    for _ in range(2):
        held = tables.open("one", None)
        assert held is not None
        tables.write([change("one", held.holder, held.number)])
    assert [update.get("_meta") is not None for update in replay(tables.entries("one"))] == [True, False, False]


def test_deleting_a_session_deletes_what_was_said_in_it(database: Path):
    tables = SqliteTables(database)
    tables.write([change("one", tables.create(session("one", "ada")), 0, 1)])
    tables.delete("one", "bob")
    tables.delete("one", None)
    assert len(tables.entries("one")) == 2
    tables.delete("one", "ada")
    assert tables.entries("one") == []


WRITER = """
import sys
from tests.store.test_sqlite import SqliteTables, change, session
tables = SqliteTables(sys.argv[1])
for number in range(20):
    name = f"{sys.argv[2]} {number}"
    holder = tables.create(session(name))
    for entry in range(10):
        assert tables.write([change(name, holder, entry)]) == [True]
"""


def test_several_processes_make_and_write_one_file_at_once(database: Path, spawn: Callable[..., Any], repo_root: Path):
    writers = [spawn(sys.executable, "-c", WRITER, database, name, cwd=repo_root) for name in "abcd"]
    for writer in writers:
        _, err = writer.communicate(timeout=60)
        assert writer.returncode == 0, err.decode()
    tables = SqliteTables(database)
    assert len(tables.page(None, None, None, 1000)) == 80
    assert all(len(tables.entries(f"{name} {number}")) == 10 for name in "abcd" for number in range(20))


@pytest.mark.parametrize("sessions", [200, pytest.param(10_000, marks=pytest.mark.full)])
def test_a_page_and_a_load_cost_what_they_return_however_much_is_stored(database: Path, sessions: int):
    tables = SqliteTables(database)
    tables.create(session("first", "ada"))
    counts: dict[Callable[[SqliteTables], int], int] = {}
    for what, most in ((page, 50), (page_of_directory, 50), (load, 100)):
        alone, _ = steps_of(tables, what)
        counts[what] = alone + 60 * most
    fill(database, sessions // 2, 100)
    for what, most in counts.items():
        steps, rows = steps_of(tables, what)
        print(f"{what.__name__}: {steps} steps for {rows} rows, of {sessions} sessions with 100 updates each")
        assert rows == (100 if what is load else 50)
        assert steps < most


def page(tables: SqliteTables) -> int:
    return len(tables.page("ada", None, Place("2026-01-02", ""), 50))


def page_of_directory(tables: SqliteTables) -> int:
    return len(tables.page("ada", "/1", Place("2026-01-02", ""), 50))


def load(tables: SqliteTables) -> int:
    held = tables.open("ada 60", "ada")
    return len(tables.entries("ada 60")) if isinstance(held, Held) else 0


@contextmanager
def counted(connection: sqlite3.Connection) -> Iterator[list[int]]:
    """Counts the instructions of SQLite's machine."""
    count = [0]

    def step() -> None:
        count[0] += 1

    connection.set_progress_handler(step, 1)
    yield count
    connection.set_progress_handler(None, 0)


def steps_of(tables: SqliteTables, what: Callable[[SqliteTables], int]) -> tuple[int, int]:
    with counted(tables._connection()) as count:
        rows = what(tables)
    return count[0], rows


def fill(database: Path, sessions: int, updates: int) -> None:
    """Every second session is ada's, all in one directory."""
    rows = [("bob" if number % 2 else "ada", number, "/1") for number in range(2 * sessions)]
    with closing(sqlite3.connect(database)) as connection, connection:
        connection.executemany(
            "INSERT INTO session (id, owner, cwd, directories, created_at, updated_at, options, state)"
            " VALUES (?, ?, ?, '[]', ?, ?, '{}', '{}')",
            [(f"{owner} {number}", owner, cwd, at(number), at(number)) for owner, number, cwd in rows],
        )
        connection.executemany(
            "INSERT INTO entry (session, number, kind, body) VALUES (?, ?, 'update', ?)",
            ((f"{owner} {number}", entry, UPDATE % entry) for owner, number, _ in rows for entry in range(updates)),
        )


def at(number: int) -> str:
    return f"2026-01-01T00:00:00.{number:06d}Z"


async def test_a_setting_names_the_store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    assert open_store("none") is None
    assert isinstance(open_store("memory:"), MemoryStore)
    for name, folder, expected in (
        (f"sqlite:///{tmp_path}/a.db", None, tmp_path / "a.db"),
        ("sqlite:///var/b.db", tmp_path, tmp_path / "var" / "b.db"),
        ("sqlite:///~/c.db", None, tmp_path / "home" / "c.db"),
    ):
        store = open_store(name, folder)
        assert isinstance(store, DurableStore)
        await store.create(session("one"))
        assert expected.exists()
    for name, message in (("sqlite:///b.db", "absolute path"), ("django", "not available here")):
        with pytest.raises(ConfigurationError, match=message):
            open_store(name)
