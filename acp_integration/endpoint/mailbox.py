"""What one event stream has to say: kept in order while nobody reads, and replayable for a while after it was read."""

import itertools
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from time import monotonic
from typing import Final

import anyio

from acp_integration.endpoint.ledger import Event, Ledger, MailboxFull

READER_GRACE: Final = 3.0
"""Seconds for which a sender waits for a reader to come or to come back, before events pile up instead."""

TAKEOVER_WAIT: Final = 5.0
"""Seconds that an old reader may need to finish the write it is in when a new one takes over."""

_BATCH_EVENTS: Final = 64
_BATCH_BYTES: Final = 64 * 1024


class Reader:
    """The one event stream that empties a mailbox, until it leaves or a newer one takes over."""

    def __init__(self) -> None:
        self.scope = anyio.CancelScope()
        self.dismissed = False
        self._wake = anyio.Event()

    async def woken(self) -> None:
        """Wait until there may be something to do."""
        await self._wake.wait()
        self._wake = anyio.Event()

    def wake(self) -> None:
        """Make the reader look again."""
        self._wake.set()

    def dismiss(self) -> None:
        """Ask the reader to leave after the write it is in."""
        self.dismissed = True
        self.wake()


class Mailbox:
    """The events of one stream: those nobody has written to a peer yet, and the last of those somebody has."""

    def __init__(self, ledger: Ledger) -> None:
        self.reader: Reader | None = None
        self.was_read = False
        self.finished = False
        self.discard_at: float | None = None
        self._ledger = ledger
        self._unread: deque[Event] = deque()
        self._read: deque[Event] = deque()
        self._readerless_since = monotonic()
        self._relieved = anyio.Event()
        self._pen = anyio.Lock()
        self._writer: Reader | None = None
        self._behind: dict[int, Mailbox] = {}
        self._followers: set[Mailbox] = set()

    @property
    def unread(self) -> int:
        """How many events no reader has written yet."""
        return len(self._unread)

    def push(self, frame: bytes, behind: "Mailbox | None" = None) -> None:
        """Keep one more event; a reader that lags too far is dismissed and its events kept.

        Args:
            frame: the message.
            behind: another stream, whose events so far its reader is to have first.

        Raises:
            MailboxFull: if there is no reader and no room.
        """
        if self.finished:
            return
        limits = self._ledger.limits
        if self.reader is None and len(self._unread) >= limits.capacity:
            raise MailboxFull
        event = self._ledger.next_event(frame)
        if behind is not None:
            self._behind[event.id] = behind
        self._ledger.unread_bytes += event.cost
        self._unread.append(event)
        if self._ledger.unread_bytes > limits.max_unread_bytes:
            raise MailboxFull
        if self.reader is not None:
            self.reader.wake()
            if len(self._unread) > limits.max_pending:
                self.detach()

    def batch(self) -> list[Event]:
        """The next events to write, not more than go well into one write."""
        events: list[Event] = []
        size = 0
        for event in self._unread:
            if (events and size + event.cost > _BATCH_BYTES) or (self._behind and self._must_wait(event)):
                break
            events.append(event)
            size += event.cost
            if len(events) == _BATCH_EVENTS:
                break
        return events

    def _must_wait(self, event: Event) -> bool:
        other = self._behind.get(event.id)
        if other is None:
            return False
        if not self.finished and other.owes(event.id):
            other.call_back(self)
            return True
        del self._behind[event.id]
        return False

    def owes(self, identifier: int) -> bool:
        """Whether somebody reads this stream and has not yet all events before one of another stream."""
        return self.reader is not None and bool(self._unread) and self._unread[0].id < identifier

    def call_back(self, follower: "Mailbox") -> None:
        """Let the reader of another stream look again when the one of this has gone on, or left."""
        self._followers.add(follower)

    def commit(self, count: int) -> None:
        """The next `count` events were written: keep them only for replay."""
        for _ in range(count):
            event = self._unread.popleft()
            self._ledger.unread_bytes -= event.cost
            self._ledger.replay_bytes += event.cost
            self._read.append(event)
        self._forget_oldest()
        self._relieve()

    def resume_after(self, last_id: int) -> None:
        """The peer has seen the events up to `last_id` and no later one; an id never given out is ignored."""
        if last_id > self._ledger.last_id:
            return
        while self._read and self._read[-1].id > last_id:
            event = self._read.pop()
            self._ledger.replay_bytes -= event.cost
            self._ledger.unread_bytes += event.cost
            self._unread.appendleft(event)
        self.commit(sum(1 for _ in itertools.takewhile(lambda event: event.id <= last_id, self._unread)))

    def attach(self) -> Reader:
        """Make a new reader the reader, and ask the one before to leave."""
        self.detach()
        self.reader = Reader()
        self.was_read = True
        return self.reader

    def detach(self) -> None:
        """Dismiss the reader and keep the events."""
        if self.reader is not None:
            self.reader.dismiss()
            self._no_reader()

    def leave(self, reader: Reader) -> None:
        """A reader has written its last; an older one disturbs nobody."""
        if self.reader is reader:
            self._no_reader()

    @asynccontextmanager
    async def writing(self, reader: Reader) -> AsyncIterator[None]:
        """Write as the only reader: wait until the one before is out of its write, and cut that off if it lasts.

        A reader that was dismissed meanwhile has nothing to write, and waits for nobody: a newer one may be writing.
        """
        if not await self._may_write(reader):
            yield
            return
        self._writer = reader
        try:
            yield
        finally:
            self._writer = None
            self._pen.release()

    async def _may_write(self, reader: Reader) -> bool:
        while not reader.dismissed:
            if await self._take_pen():
                return True
            if self._writer is not None and not reader.dismissed:
                self._writer.scope.cancel()
        return False

    async def _take_pen(self) -> bool:
        with anyio.move_on_after(TAKEOVER_WAIT):
            await self._pen.acquire()
            return True
        return False

    def finish(self) -> None:
        """Take no more events; the reader writes out what is here and ends."""
        self.finished = True
        if self.reader is not None:
            self.reader.wake()
        self._relieve()

    def clear(self) -> None:
        """Give back what the events take."""
        self._ledger.unread_bytes -= sum(event.cost for event in self._unread)
        self._ledger.replay_bytes -= sum(event.cost for event in self._read)
        self._unread.clear()
        self._read.clear()
        self._behind.clear()

    @property
    def ended(self) -> bool:
        """Whether a reader has nothing to wait for any more."""
        return not self._unread and (self.finished or self.patience(None) == 0)

    def patience(self, longest: float | None) -> float | None:
        """How many seconds a reader may wait for an event before it must look again."""
        if self.discard_at is None:
            return longest
        left = max(0.0, self.discard_at - monotonic())
        return left if longest is None else min(left, longest)

    @property
    def congested(self) -> bool:
        """Whether a sender should wait for the reader, or for a while for a reader to come."""
        return not self.finished and self._half_full() and (self.reader is not None or self._grace() > 0)

    async def drain(self) -> None:
        """Wait until a sender may go on."""
        while self.congested:
            patience = None if self.reader is not None else self._grace()
            with anyio.move_on_after(patience):
                await self._relieved.wait()

    async def wait_unattended(self) -> None:
        """Wait until nobody reads."""
        while self.reader is not None:
            await self._relieved.wait()

    def _half_full(self) -> bool:
        limits = self._ledger.limits
        crowded = len(self._unread) * 2 >= min(limits.max_pending, limits.capacity)
        return crowded or (bool(self._unread) and self._ledger.unread_bytes * 2 >= limits.max_unread_bytes)

    def _grace(self) -> float:
        return self._readerless_since + READER_GRACE - monotonic()

    def _no_reader(self) -> None:
        self.reader = None
        self._readerless_since = monotonic()
        self._relieve()

    def _forget_oldest(self) -> None:
        limits = self._ledger.limits
        while len(self._read) > limits.capacity or (self._read and self._ledger.replay_bytes > limits.max_replay_bytes):
            self._ledger.replay_bytes -= self._read.popleft().cost

    def _relieve(self) -> None:
        followers, self._followers = self._followers, set()
        for follower in followers:
            if follower.reader is not None:
                follower.reader.wake()
        self._relieved.set()
        self._relieved = anyio.Event()
