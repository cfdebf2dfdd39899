"""The transcript of a session: entries in order, the pieces of one message merged at its end."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final, Literal, NamedTuple

import msgspec

from acp_integration.context import updates
from acp_integration.jsonrpc import encode
from acp_integration.store.tables import Entry, EntryKind, Span

LONGEST_MESSAGE: Final = 256 * 1024
"""Bytes of text after which the rest of a message becomes an entry of its own."""
CUT: Final = {"acp_integration": {"cut": True}}
"""What `_meta` of the last entry of a turn says if the turn broke off there."""

_END: Final = b'"}}'
_HEADS: Final = {
    kind: updates.chunk(kind, "")[: -len(_END)] for kind in (updates.MESSAGE, updates.THOUGHT, updates.USER_MESSAGE)
}
_OPENINGS: Final = tuple(b'{"sessionUpdate":"%b"' % kind.encode() for kind in _HEADS)


class Piece(NamedTuple):
    """A chunk of text, cut so that the bodies of chunks with equal ends can be joined."""

    head: bytes
    body: bytes
    tail: bytes


class _Text(msgspec.Struct, tag_field="type", tag="text", forbid_unknown_fields=True):
    text: str


class _Chunk(msgspec.Struct, rename="camel", forbid_unknown_fields=True):
    session_update: Literal["agent_message_chunk", "agent_thought_chunk", "user_message_chunk"]
    content: _Text
    message_id: str | None = None


def piece_of(update: bytes) -> Piece | None:
    """An update as a piece of a message; None if it is anything but plain text."""
    if not update.startswith(_OPENINGS):
        return None
    for head in _HEADS.values():
        if _is_plain(update, head):
            return Piece(head, update[len(head) : -len(_END)], _END)
    return _decoded_piece(update)


def _is_plain(update: bytes, head: bytes) -> bool:
    """Whether an update is a text without a quote between two known ends: so are most, and it is quickly seen."""
    ends = update.find(b'"', len(head)) == len(update) - len(_END)
    return ends and update.startswith(head) and update.endswith(_END)


def _decoded_piece(update: bytes) -> Piece | None:
    try:
        chunk = msgspec.json.decode(update, type=_Chunk)
    except msgspec.ValidationError:
        return None
    tail = _END if chunk.message_id is None else b'"},"messageId":%b}' % encode(chunk.message_id)
    return Piece(_HEADS[chunk.session_update], encode(chunk.content.text)[1:-1], tail)


class _Message:
    """A message that goes on: what was said of it, and where what was written of it stands."""

    def __init__(self, piece: Piece) -> None:
        self.head, self.tail = piece.head, piece.tail
        self.bodies: list[bytes] = []
        self.written = 0
        self.span: Span | None = None
        self.size = 0

    def takes(self, piece: Piece) -> bool:
        """Whether a piece belongs to this message."""
        return piece.head == self.head and piece.tail == self.tail and self.size < LONGEST_MESSAGE

    def takes_plain(self, update: bytes) -> bool:
        """Add an update if it is seen at a glance to belong to this message."""
        head = self.head
        if self.size >= LONGEST_MESSAGE or self.tail != _END or not _is_plain(update, head):
            return False
        self.add(update[len(head) : -len(_END)])
        return True

    def add(self, body: bytes) -> None:
        self.bodies.append(body)
        self.size += len(body)

    def text(self, first: int = 0) -> bytes:
        """The update that says all from a body on."""
        return self.head + b"".join(self.bodies[first:]) + self.tail


class Transcript:
    """Numbers what happens in a session, and says what of it is to be written.

    Args:
        number: the number of the next entry.
    """

    def __init__(self, number: int) -> None:
        self._number = number
        self._message: _Message | None = None
        self._entries: list[Entry] = []
        self._gone: list[Span] = []

    def prompt(self, blocks: Iterable[bytes]) -> None:
        """Add a prompt, one update for each of its blocks."""
        self.end_message()
        for update in blocks:
            self._add("prompt", update)

    def add(self, update: bytes) -> bool:
        """Add an update; True if it is a piece of a message."""
        message = self._message
        if message is not None and message.takes_plain(update):
            return True
        piece = piece_of(update)
        if message is not None and (piece is None or not message.takes(piece)):
            self.end_message()
        if piece is None:
            self._add("update", update)
            return False
        if self._message is None:
            self._message = _Message(piece)
        self._message.add(piece.body)
        return True

    def end_message(self) -> None:
        """Merge the pieces of the message so far."""
        message, self._message = self._message, None
        if message is None:
            return
        if message.span is None:
            self._add("update", message.text())
        else:
            self._gone.append(message.span)
            self._entries.append(Entry(message.span.first, "update", message.text()))

    def take(self) -> tuple[Sequence[Span], Sequence[Entry]]:
        """What is to be written now: the entries that are replaced, and those that are new."""
        message = self._message
        if message is not None and message.written < len(message.bodies):
            number = self._add("piece", message.text(message.written))
            message.span = Span(number if message.span is None else message.span.first, number)
            message.written = len(message.bodies)
        gone, self._gone = self._gone, []
        entries, self._entries = self._entries, []
        return gone, entries

    def _add(self, kind: EntryKind, update: bytes) -> int:
        number = self._number
        self._number += 1
        self._entries.append(Entry(number, kind, update))
        return number


def replay(entries: Iterable[Entry]) -> list[dict[str, Any]]:
    """The updates that show a transcript: pieces of a message that never ended are merged, cut turns are marked."""
    return [run.update() for run in _runs(entries)]


class _Run:
    """Entries that are shown as one update: one entry, or pieces of one message."""

    def __init__(self, entry: Entry, piece: Piece | None) -> None:
        self.last = entry
        self.pieces = [] if piece is None else [piece]

    def takes(self, piece: Piece) -> bool:
        """Whether a piece goes on with the message."""
        if not self.pieces or self.last.cut:
            return False
        return (piece.head, piece.tail) == (self.pieces[0].head, self.pieces[0].tail)

    def update(self) -> dict[str, Any]:
        """The update, marked if the turn broke off here."""
        whole = self.last.update
        if self.pieces:
            first = self.pieces[0]
            whole = first.head + b"".join(piece.body for piece in self.pieces) + first.tail
        update: dict[str, Any] = msgspec.json.decode(whole)
        return {**update, "_meta": {**(update.get("_meta") or {}), **CUT}} if self.last.cut else update


def _runs(entries: Iterable[Entry]) -> Iterator[_Run]:
    run: _Run | None = None
    for entry in entries:
        piece = piece_of(entry.update) if entry.kind == "piece" else None
        if run is not None and piece is not None and run.takes(piece):
            run.pieces.append(piece)
            run.last = entry
            continue
        if run is not None:
            yield run
        run = _Run(entry, piece)
    if run is not None:
        yield run
