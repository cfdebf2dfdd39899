"""What a durable store is made of: a few blocking verbs over sessions and the entries of their transcripts."""

from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple, Protocol

import msgspec

from acp_integration.store.protocol import StoredSession

EntryKind = Literal["prompt", "update", "piece"]


class Entry(msgspec.Struct, frozen=True):
    """One line of a transcript.

    Attributes:
        number: its place; later ones are greater, and there may be gaps.
        kind: `prompt` for a block of a prompt, `piece` for a part of a message that has not ended, else `update`.
        update: the JSON of the update that shows it.
        cut: whether the turn broke off behind it.
    """

    number: int
    kind: EntryKind
    update: bytes
    cut: bool = False


class Span(NamedTuple):
    """The entries from one number to another, both included."""

    first: int
    last: int


class Change(msgspec.Struct, frozen=True, kw_only=True):
    """What the holder of a session writes at once.

    Attributes:
        holder: the number the holder got when it opened the session.
        gone: entries that are replaced by what follows.
        entries: entries to add.
        fields: fields of `StoredSession` that changed: title, mode, options, state.
        turn: whether a turn is under way from here on; None leaves it as it is.
    """

    session: str
    holder: int
    gone: Sequence[Span] = ()
    entries: Sequence[Entry] = ()
    fields: Mapping[str, Any] = msgspec.field(default_factory=dict)
    turn: bool | None = None


class Held(NamedTuple):
    """A session that was opened: what is kept of it, the holder's number, and the number of the next entry."""

    session: StoredSession
    holder: int
    number: int


class Place(NamedTuple):
    """Where a page of sessions begins: behind the session that changed then and has this id."""

    updated_at: str
    session: str


class Tables(Protocol):
    """Keeps sessions on disk. Every method may block, and all are called on the one thread of the store."""

    def create(self, session: StoredSession) -> int:
        """Keep a new session; returns its holder's number.

        Raises:
            ValueError: if there is a session with that id.
        """
        ...

    def open(self, session_id: str, owner: str | None) -> Held | None:
        """Find a session of an owner and give it a new holder; a turn that was under way counts as cut."""
        ...

    def write(self, changes: Sequence[Change]) -> Sequence[bool]:
        """Write in one commit; False in the place of each change whose holder holds the session no more."""
        ...

    def entries(self, session_id: str) -> Sequence[Entry]:
        """The whole transcript, oldest first."""
        ...

    def page(self, owner: str | None, cwd: str | None, after: Place | None, size: int) -> Sequence[StoredSession]:
        """At most so many sessions of an owner, those that changed last first; `state` may be left out."""
        ...

    def delete(self, session_id: str, owner: str | None) -> None:
        """Forget a session of an owner; one that is not there is no error."""
        ...
