"""What keeps sessions: the seam behind `session-store`."""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import msgspec

from acp_integration.sessions import Journal


class StoredSession(msgspec.Struct, frozen=True, kw_only=True):
    """What is kept of a session beside its prompts and updates.

    Attributes:
        owner: the principal it belongs to; None without one. Nobody else finds it.
        updated_at: when it last changed, in ISO 8601.
        options: the values of its config options, by id.
        state: what the agent keeps for it, JSON values.
    """

    id: str
    owner: str | None
    cwd: str
    additional_directories: Sequence[str] = ()
    title: str | None = None
    updated_at: str | None = None
    mode: str | None = None
    options: Mapping[str, str | bool] = msgspec.field(default_factory=dict)
    state: Mapping[str, Any] = msgspec.field(default_factory=dict)


class Page(msgspec.Struct, frozen=True):
    """Some sessions, newest first, and the cursor of the next page if there is one."""

    sessions: Sequence[StoredSession]
    next_cursor: str | None = None


class SessionStore(Protocol):
    """Keeps sessions for all connections of an agent."""

    async def create(self, session: StoredSession) -> Journal:
        """Keep a new session; who created it holds it."""
        ...

    async def open(self, session_id: str, owner: str | None) -> tuple[StoredSession, Journal] | None:
        """Find a session of an owner and hold it from now on; whoever held it before does so no more."""
        ...

    async def page(self, owner: str | None, *, cwd: str | None, cursor: str | None) -> Page:
        """One page of an owner's sessions, of one directory if it is given.

        Raises:
            RequestError: -32602 for a cursor that no page gave.
        """
        ...

    async def delete(self, session_id: str, owner: str | None) -> None:
        """Forget a session of an owner; one that is not there is no error."""
        ...
