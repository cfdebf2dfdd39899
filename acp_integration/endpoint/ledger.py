"""What all event streams of one connection hold together, and what bounds it."""

import itertools
from collections.abc import Iterator
from typing import Final, NamedTuple

_EVENT_COST: Final = 128


class Event(NamedTuple):
    """One message on its way out; ids grow over all streams of a connection."""

    id: int
    frame: bytes

    @property
    def cost(self) -> int:
        """The bytes that keeping it takes, about."""
        return len(self.frame) + _EVENT_COST


class MailboxFull(Exception):
    """An event more than a mailbox without a reader may keep."""


class Limits(NamedTuple):
    """What bounds the mailboxes of a connection: events without and with a reader, bytes unread and replayable."""

    capacity: int
    max_pending: int
    max_unread_bytes: int
    max_replay_bytes: int


class Ledger:
    """What all mailboxes of one connection hold, and the ids of their events."""

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self.unread_bytes = 0
        self.replay_bytes = 0
        self.last_id = 0
        self._ids: Iterator[int] = itertools.count(1)

    def next_event(self, frame: bytes) -> Event:
        """Number a message."""
        self.last_id = next(self._ids)
        return Event(self.last_id, frame)
