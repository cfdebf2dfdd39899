"""What a connection writes to a session that a durable store keeps, and when what was written leaves."""

import asyncio
import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future
from contextlib import suppress
from typing import Any, Final

import anyio
import msgspec

from acp_integration.store.tables import Change, Held
from acp_integration.store.thread import StoreThread
from acp_integration.store.transcript import Transcript, replay

logger = logging.getLogger(__name__)

FLUSH_SECONDS: Final = 0.02
"""The least time between two commits of a session's updates, and so the longest an update waits to be committed."""
MOST_WAITING: Final = 1024
"""Updates that wait for their commit before a sender is asked to wait."""

Leave = Callable[[], None]


class DurableJournal:
    """Lets every update leave behind the commit that keeps it. Used on the loop that made it.

    Updates are committed in groups: the first of a burst at once, the others every 20 ms.
    """

    def __init__(self, thread: StoreThread, held: Held) -> None:
        self._thread = thread
        self._session = held.session.id
        self._holder = held.holder
        self._loop = asyncio.get_running_loop()
        self._transcript = Transcript(held.number)
        self._leaving: list[Leave] = []
        self._timer: asyncio.TimerHandle | None = None
        self._flushed = float("-inf")
        self._asked = self._written = 0
        self._waiting = 0
        self._progress = asyncio.Event()
        self._failure: BaseException | None = None
        self._taken_over: Callable[[], object] | None = None
        self._turn_ended = anyio.Event()
        self._over = False

    @property
    def congested(self) -> bool:
        """Whether so much waits for its commit that a sender should `settle` before it goes on."""
        return self._waiting >= MOST_WAITING

    def put(self, update: bytes, leave: Leave) -> None:
        """Keep an update, and call `leave`, in order, once it may go to the client."""
        if self._over:
            return
        is_piece = self._transcript.add(update)
        self._leaving.append(leave)
        self._waiting += 1
        if not is_piece and b'"session_info_update"' in update:
            self._flush(_told_title(update))
        elif self._timer is None:
            due = self._flushed + FLUSH_SECONDS - self._loop.time()
            self._timer = self._loop.call_later(max(due, 0.0), self._flush)

    async def begin(self, prompt: Iterable[bytes], taken_over: Callable[[], object]) -> bool:
        """Keep a prompt, which begins a turn; `taken_over` is called if the session is opened elsewhere meanwhile.

        Returns:
            False if it was opened elsewhere before.
        """
        if self._over:
            return False
        self._failure = None
        self._transcript.prompt(prompt)
        self._flush(turn=True)
        await self._caught_up()
        if not self._over:
            self._taken_over, self._turn_ended = taken_over, anyio.Event()
        return not self._over

    async def end(self, changes: Mapping[str, Any]) -> None:
        """End a turn: return when all that was put has left, with what changed beside it saved."""
        self._taken_over = None
        self._turn_ended.set()
        self._transcript.end_message()
        try:
            self._flush(changes, turn=False)
        except Exception:  # the agent's state is no JSON, say
            self._flush(turn=False)
            raise
        try:
            await self._caught_up()
        except asyncio.CancelledError:
            await self._caught_up()  # told once, of a turn whose handler has ended: what it sent still leaves
            raise

    async def release(self) -> None:
        """Let somebody else hold the session: a turn that is under way is cancelled, and has ended on return."""
        if self._taken_over is not None:
            self._taken_over()
            await self._turn_ended.wait()

    async def settle(self, changes: Mapping[str, Any] | None = None) -> None:
        """Return when all that was put has left, with what changed of the session beside it saved."""
        self._flush(changes or {})
        await self._caught_up()

    async def history(self) -> Sequence[Mapping[str, Any]]:
        """All that was kept, oldest first."""
        await self.settle()
        return replay(await self._thread.run(self._thread.tables.entries, self._session))

    def _flush(self, changes: Mapping[str, Any] | None = None, *, turn: bool | None = None) -> None:
        fields = _frozen(changes or {})
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        gone, entries = self._transcript.take()
        if self._over or not (gone or entries or changes or turn is not None):
            return
        leaving, self._leaving = self._leaving, []
        change = Change(
            session=self._session,
            holder=self._holder,
            gone=gone,
            entries=entries,
            fields=fields,
            turn=turn,
        )
        self._asked += 1
        self._flushed = self._loop.time()
        self._thread.write(change).add_done_callback(lambda written: self._answered(written, leaving))

    def _answered(self, written: "Future[bool]", leaving: Sequence[Leave]) -> None:
        """Called on the thread of the store."""
        with suppress(RuntimeError):  # the loop may be closed by now, and with it the connection
            self._loop.call_soon_threadsafe(self._confirm, written, leaving)

    def _confirm(self, written: "Future[bool]", leaving: Sequence[Leave]) -> None:
        self._waiting -= len(leaving)
        self._written += 1
        error = written.exception()
        if error is not None:
            logger.error("Session %s could not be kept, so what was said is not sent: %r", self._session, error)
            self._failure = error
        elif not written.result():
            self._give_up()
        elif not self._over:
            for leave in leaving:
                leave()
        self._progress.set()

    def _give_up(self) -> None:
        self._over = True
        self._leaving.clear()
        taken_over, self._taken_over = self._taken_over, None
        if taken_over is not None:
            taken_over()

    async def _caught_up(self) -> None:
        asked = self._asked
        while self._written < asked:
            self._progress.clear()
            await self._progress.wait()
        if self._failure is not None:
            raise OSError("The session store failed") from self._failure


def _frozen(changes: Mapping[str, Any]) -> Mapping[str, Any]:
    """The changes as they are now: the store's thread reads them when the agent may have gone on."""
    copied: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(changes))
    return copied


def _told_title(update: bytes) -> Mapping[str, Any]:
    told = msgspec.json.decode(update)
    if told.get("sessionUpdate") != "session_info_update" or "title" not in told:
        return {}
    return {"title": told["title"]}
