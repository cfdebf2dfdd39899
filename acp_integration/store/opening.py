"""From the value of `session-store` to the store it names."""

import os
from pathlib import Path
from typing import Final

from acp_integration.errors import ConfigurationError
from acp_integration.store.durable import DurableStore
from acp_integration.store.memory import MemoryStore
from acp_integration.store.protocol import SessionStore

_SQLITE: Final = "sqlite:///"


def open_store(name: str, folder: str | os.PathLike[str] | None = None) -> SessionStore | None:
    """The store that a setting names; nothing is opened before it is used.

    Args:
        name: ``none``, ``memory:``, or ``sqlite:///`` and a path: ``~`` is the user's home, and an absolute path makes
            it four slashes.
        folder: where a relative path begins: the agent's project, never the working directory, which is a stranger's.

    Raises:
        ConfigurationError: if it names a store that belongs to a framework, or a relative path without a folder.
    """
    if name == "none":
        return None
    if name == "memory:":
        return MemoryStore()
    if name.startswith(_SQLITE):
        return _sqlite_store(name, folder)
    raise ConfigurationError(
        f"acp.agent.session-store={name} is not available here: use none, memory: or {_SQLITE}path"
    )


def _sqlite_store(name: str, folder: str | os.PathLike[str] | None) -> SessionStore:
    try:
        from acp_integration.store.sqlite import SqliteTables  # noqa: PLC0415  # not in every build of Python
    except ImportError as error:
        raise ConfigurationError(f"acp.agent.session-store={name}: this Python was built without sqlite3") from error
    path = Path(name.removeprefix(_SQLITE)).expanduser()
    if not path.is_absolute() and folder is None:
        raise ConfigurationError(f"acp.agent.session-store={name}: write an absolute path, {_SQLITE}/var/lib/acp.db")
    return DurableStore(SqliteTables(Path(folder or "", path)))
