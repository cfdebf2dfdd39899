"""The tables of a SQLite session store, by version."""

import sqlite3
from typing import Final

from acp_integration.errors import ConfigurationError

_FIRST: Final = (
    """
    CREATE TABLE session (
        id TEXT PRIMARY KEY,
        owner TEXT,
        cwd TEXT NOT NULL,
        directories TEXT NOT NULL,
        title TEXT,
        created_at TEXT NOT NULL,
        updated_at TEXT NOT NULL,
        mode TEXT,
        options TEXT NOT NULL,
        state TEXT NOT NULL,
        holder INTEGER NOT NULL DEFAULT 1,
        turn INTEGER NOT NULL DEFAULT 0
    )
    """,
    "CREATE INDEX session_by_time ON session (owner, updated_at, id)",
    "CREATE INDEX session_by_directory ON session (owner, cwd, updated_at, id)",
    """
    CREATE TABLE entry (
        session TEXT NOT NULL REFERENCES session (id) ON DELETE CASCADE,
        number INTEGER NOT NULL,
        kind TEXT NOT NULL,
        cut INTEGER NOT NULL DEFAULT 0,
        body BLOB NOT NULL,
        PRIMARY KEY (session, number)
    ) WITHOUT ROWID
    """,
)
VERSIONS: Final = (_FIRST,)
"""What each version of the schema adds to the one before; a version, once released, is never changed."""


def migrate(connection: sqlite3.Connection, path: str) -> None:
    """Bring a database to the newest version; called inside a transaction that writes.

    Raises:
        ConfigurationError: if a newer version of this package wrote it.
    """
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    if version > len(VERSIONS):
        raise ConfigurationError(
            f"{path} has version {version} of the session store, this release knows {len(VERSIONS)}: upgrade it"
        )
    for statements in VERSIONS[version:]:
        for statement in statements:
            connection.execute(statement)
    connection.execute(f"PRAGMA user_version = {len(VERSIONS)}")
