"""Writes lines to a file descriptor, joined into as few writes as possible, without ever holding up the loop."""

import asyncio
import contextlib
import os
import select
import threading
from typing import Final

import anyio

from acp_integration.transports.input import is_watchable
from acp_integration.transports.room import PIPE_BUF, Room

HIGH_WATER: Final = 1024 * 1024
"""Queued bytes at which senders are asked to wait."""
STALL_SECONDS: Final = 5.0
"""How long a closing transport waits for a peer that reads nothing at all."""
_POLL_MILLISECONDS: Final = 500
_DIRECT_BYTES: Final = 16 * PIPE_BUF


class Output:
    """The one writer of a descriptor, which it owns; all methods but the threads' own run on the loop.

    What a pipe or a socket has room for is written at once, since waking a thread costs more than the write; a thread
    writes everything else, and is started for it.

    Attributes:
        broken: set when nobody reads any more.
        congested: whether more is queued than should be.
    """

    def __init__(self, fd: int) -> None:
        self.broken = anyio.Event()
        self.congested = False
        self._fd = fd
        self._loop: asyncio.AbstractEventLoop | None = None
        self._room_in_peer: Room | None = None
        self._thread: threading.Thread | None = None
        self._watcher: threading.Thread | None = None
        self._stop_read, self._stop_write = -1, -1
        self._tick: list[bytes] = []
        self._condition = threading.Condition()
        self._queue: list[bytes] = []
        self._queued = 0
        self._written = 0
        self._failed = False
        self._finishing = False
        self._room: asyncio.Future[None] | None = None

    def start(self, loop: asyncio.AbstractEventLoop) -> None:
        """Begin to write what is queued."""
        self._loop = loop
        if is_watchable(self._fd):
            self._room_in_peer = Room(self._fd)

    def write(self, frame: bytes) -> None:
        """Queue a line; what is queued in one tick of the loop is written together."""
        if self._failed or self._loop is None or self._finishing:
            return
        if not self._tick:
            self._loop.call_soon(self.flush)
        self._tick.append(frame)

    async def drain(self) -> None:
        """Wait until half of what is allowed is queued."""
        while self.congested:
            if self._room is None or self._room.done():
                self._room = asyncio.get_running_loop().create_future()
            await asyncio.shield(self._room)

    def watch_reader(self) -> None:
        """Notice from now on, also without a write, when nobody reads the descriptor any more."""
        self._stop_read, self._stop_write = os.pipe()
        self._watcher = threading.Thread(target=self._watch, name="acp-stdout-watch", daemon=True)
        self._watcher.start()

    async def aclose(self) -> None:
        """Write out what is queued, unless the peer reads nothing of it, and close the descriptor."""
        self.flush()
        with self._condition:
            self._finishing = True
            self._condition.notify()
        await self._end_watching()
        if await self._written_out():
            os.close(self._fd)

    async def _written_out(self) -> bool:
        """Wait for the writing thread; False if its write is stuck for ever."""
        thread = self._thread
        while thread is not None and thread.is_alive() and not self._failed:
            before = self._written
            await self._wait_for(thread)
            if self._written == before:
                break
        return thread is None or not thread.is_alive()

    async def _end_watching(self) -> None:
        if self._watcher is not None:
            os.write(self._stop_write, b"x")
            await self._wait_for(self._watcher)
            os.close(self._stop_read)
            os.close(self._stop_write)

    async def _wait_for(self, thread: threading.Thread) -> None:
        assert self._loop is not None
        await self._loop.run_in_executor(None, thread.join, STALL_SECONDS)

    def flush(self) -> None:
        """Write what is queued now, not at the end of the tick."""
        if not self._tick or self._failed:
            return
        frames, self._tick = self._tick, []
        data = b"\n".join(frames) + b"\n"
        if self._room_in_peer is not None and not self._queued and len(data) <= _DIRECT_BYTES:
            data = self._write_at_once(data, self._room_in_peer)
        if data:
            self._hand_over(data)

    def _write_at_once(self, data: bytes, room: Room) -> bytes:
        """Write as much as there is room for; what is left."""
        start = 0
        while start < len(data) and (size := room.free(len(data) - start)):
            try:
                start += os.write(self._fd, data[start : start + size])
            except BlockingIOError:  # the descriptor's other owner made it non-blocking
                break
            except OSError:
                self._break()
                return b""
        return data[start:]

    def _hand_over(self, data: bytes) -> None:
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="acp-stdout", daemon=True)
            self._thread.start()
        with self._condition:
            self._queue.append(data)
            self._queued += len(data)
            self._condition.notify()
        self.congested = self._queued >= HIGH_WATER

    def _wrote(self, size: int) -> None:
        with self._condition:
            self._queued -= size
        self.congested = self._queued >= HIGH_WATER
        if self._queued <= HIGH_WATER // 2:
            self._release()

    def _break(self) -> None:
        self._failed = True
        self.congested = False
        self.broken.set()
        self._release()

    def _release(self) -> None:
        if self._room is not None and not self._room.done():
            self._room.set_result(None)

    # -- on threads ---------------------------------------------------------------------------------------------------

    def _watch(self) -> None:
        poll = select.poll()
        poll.register(self._fd, 0)  # errors and hang-ups are reported without being asked for
        poll.register(self._stop_read, select.POLLIN)
        if any(fd == self._fd for fd, _ in poll.poll()):
            self._tell(self._break)

    def _run(self) -> None:
        while (data := self._next()) is not None:
            if not self._write_all(data):
                self._tell(self._break)
                return
            self._tell(self._wrote, len(data))

    def _next(self) -> bytes | None:
        with self._condition:
            while not self._queue:
                if self._finishing:
                    return None
                self._condition.wait()
            data, self._queue = b"".join(self._queue), []
            return data

    def _write_all(self, data: bytes) -> bool:
        view = memoryview(data)
        while view:
            try:
                count = os.write(self._fd, view)
            except BlockingIOError:  # the descriptor's other owner made it non-blocking
                select.select([], [self._fd], [], _POLL_MILLISECONDS / 1000)
                continue
            except OSError:
                return False
            self._written += count
            view = view[count:]
        return True

    def _tell(self, function: object, *arguments: object) -> None:
        assert self._loop is not None
        with contextlib.suppress(RuntimeError):  # the loop is closed: nobody listens any more
            self._loop.call_soon_threadsafe(function, *arguments)  # type: ignore[arg-type]
