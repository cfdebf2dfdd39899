"""What one worker writes into the mailbox of another, in order and as often as it takes."""

from contextvars import Context
from itertools import accumulate
from time import monotonic
from typing import Final

import anyio
from anyio.abc import TaskGroup

from acp_integration.backplane.envelopes import Sealer
from acp_integration.backplane.mailbox import BATCH, BROKEN, DEAD, Mailbox
from acp_integration.backplane.protocol import WorkerGone
from acp_integration.backplane.reach import Reach

SEND_WITHIN: Final = 10.0
"""Seconds for which a mailbox may be full, or Redis away, while a message waits for it."""

ENDING: Final = "this worker is ending"

_LONGEST_PAUSE: Final = 0.5
_BATCH_BYTES: Final = 1024 * 1024


class Outbox:
    """Whoever writes takes along what others wrote meanwhile; who is cancelled leaves its message on its way.

    Attributes:
        seen_alive: when the worker was last known to live.
    """

    def __init__(self, worker: str, mailbox: Mailbox, sealer: Sealer, reach: Reach) -> None:
        self.seen_alive = 0.0
        self._worker = worker
        self._mailbox = mailbox
        self._sealer = sealer
        self._reach = reach
        self._waiting: list[_Letter] = []
        self._writing = False

    async def send(self, message: bytes, tasks: TaskGroup) -> None:
        """Wait until the message is in the mailbox.

        Args:
            message: what to write.
            tasks: where the writing is done.

        Raises:
            WorkerGone: if it cannot be put there.
        """
        letter = _Letter(self._sealer.seal(message))
        self._waiting.append(letter)
        if not self._writing:
            self._writing = True
            Context().run(_start, tasks, self)
        await letter.written.wait()
        if letter.failure is not None:
            raise WorkerGone(self._worker, letter.failure)

    def end(self) -> None:
        """Nothing is written any more."""
        letters, self._waiting = self._waiting, []
        for letter in letters:
            letter.end(ENDING)

    async def write_all(self) -> None:
        """Write until nothing waits."""
        try:
            while self._waiting:
                await self._write_some()
        finally:
            self._writing = False

    async def _write_some(self) -> None:
        sizes = accumulate(len(letter.sealed) for letter in self._waiting[:BATCH])
        count = max(1, sum(size <= _BATCH_BYTES for size in sizes))
        letters, self._waiting = self._waiting[:count], self._waiting[count:]
        failure: str | None = ENDING
        try:
            failure = await self._write([letter.sealed for letter in letters])
        finally:
            for letter in letters:
                letter.end(failure)

    async def _write(self, sealed: list[bytes]) -> str | None:
        """Write them all: a reader knows what it has read before. Says why it did not succeed."""
        failure, pause = "", 0.005
        with anyio.move_on_after(SEND_WITHIN):
            while sealed:
                try:
                    taken = await self._mailbox.put(sealed)
                except BROKEN as error:
                    self._reach.lost(error)
                    taken, failure = 0, "Redis is away"
                else:
                    failure = "it has ended" if taken == DEAD else "its mailbox is full"
                if taken == DEAD and self._reach.settled:
                    return failure
                if taken > 0:
                    self.seen_alive = monotonic()
                    sealed = sealed[taken:]
                else:
                    await anyio.sleep(pause)
                    pause = min(2 * pause, _LONGEST_PAUSE)
            return None
        return failure


class _Letter:
    """A message on its way into a mailbox."""

    def __init__(self, sealed: bytes) -> None:
        self.sealed = sealed
        self.written = anyio.Event()
        self.failure: str | None = None

    def end(self, failure: str | None) -> None:
        self.failure = failure
        self.written.set()


def _start(tasks: TaskGroup, outbox: Outbox) -> None:
    """Nobody in particular writes: whoever was first may be cancelled while others wait."""
    tasks.start_soon(outbox.write_all)
