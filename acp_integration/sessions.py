"""What is kept of each session that is open on one connection."""

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from acp_integration.errors import RequestError
from acp_integration.jsonrpc import RESOURCE_NOT_FOUND


@dataclass(slots=True, eq=False)
class SessionRecord:
    """One open session; handlers see it through `AcpSession`.

    Attributes:
        held: updates that wait for the answer which creates the session; None once it was written.
        used: when the session was last used, on the monotonic clock, in seconds.
    """

    id: str
    cwd: str = ""
    additional_directories: Sequence[str] = ()
    mcp_servers: Sequence[Any] = ()
    mode: str | None = None
    options: dict[str, str | bool] = field(default_factory=dict)
    state: dict[str, Any] = field(default_factory=dict)
    held: list[bytes] | None = None
    used: float = field(default_factory=time.monotonic)


class Sessions:
    """The sessions of one connection, by id."""

    def __init__(self) -> None:
        self._records: dict[str, SessionRecord] = {}

    def __len__(self) -> int:
        return len(self._records)

    def __iter__(self) -> Iterator[SessionRecord]:
        return iter(tuple(self._records.values()))

    def __contains__(self, session_id: str) -> bool:
        return session_id in self._records

    def add(self, record: SessionRecord) -> SessionRecord:
        """Open a session, in the place of an older one with the same id."""
        self._records[record.id] = record
        return record

    def find(self, session_id: str | None) -> SessionRecord | None:
        """The session with that id, or None."""
        return self._records.get(session_id) if session_id is not None else None

    def get(self, session_id: str) -> SessionRecord:
        """The session with that id.

        Raises:
            RequestError: -32002 if it is not open on this connection.
        """
        record = self._records.get(session_id)
        if record is None:
            raise RequestError(RESOURCE_NOT_FOUND, "Unknown session", {"sessionId": session_id})
        return record

    def remove(self, session_id: str) -> SessionRecord | None:
        """Close a session; unknown ids are no error."""
        return self._records.pop(session_id, None)
