"""Writes lines to a file descriptor from a thread of its own, joined into as few writes as possible."""

import asyncio
import contextlib
import os
import select
import threading
from typing import Final

import anyio

HIGH_WATER: Final = 1024 * 1024
"""Queued bytes at which senders are asked to wait."""
STALL_SECONDS: Final = 5.0
"""How long a closing transport waits for a peer that reads nothing at all."""
_POLL_MILLISECONDS: Final = 500


class OutputThread:
    """The one writer of a descriptor; all methods but the thread's own run on the loop."""

    def __init__(self, fd: int) -> None:
        self.broken = anyio.Event()
        self._fd = fd
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._tick: list[bytes] = []
        self._condition = threading.Condition()
        self._queue: list[bytes] = []
        self._queued = 0
        self._written = 0
        self._failed = False
        self._finishing = False
        self._room: asyncio.Future[None] | None = None

    def start(self, loop: asyncio.AbstractEventLoop) -> None:
        """Start the thread."""
        self._loop = loop
        self._thread = threading.Thread(target=self._run, name="acp-stdout", daemon=True)
        self._thread.start()

    def write(self, frame: bytes) -> None:
        """Queue a line; what is queued in one tick of the loop is written together."""
        if self._failed or self._loop is None or self._finishing:
            return
        if not self._tick:
            self._loop.call_soon(self._flush)
        self._tick.append(frame)

    @property
    def congested(self) -> bool:
        """Whether more is queued than should be."""
        return self._queued >= HIGH_WATER and not self._failed

    async def drain(self) -> None:
        """Wait until half of what is allowed is queued."""
        while self.congested:
            if self._room is None or self._room.done():
                self._room = asyncio.get_running_loop().create_future()
            await asyncio.shield(self._room)

    async def aclose(self) -> None:
        """Write out what is queued, unless the peer reads nothing of it."""
        self._flush()
        with self._condition:
            self._finishing = True
            self._condition.notify()
        thread = self._thread
        while thread is not None and thread.is_alive() and not self._failed:
            before = self._written
            await self._wait_for(thread)
            if thread.is_alive() and self._written == before:
                return

    def close_fd(self) -> None:
        """Close the descriptor, unless a write on it is stuck for ever."""
        if self._thread is None or not self._thread.is_alive():
            os.close(self._fd)

    async def _wait_for(self, thread: threading.Thread) -> None:
        assert self._loop is not None
        await self._loop.run_in_executor(None, thread.join, STALL_SECONDS)

    def _flush(self) -> None:
        if not self._tick:
            return
        frames, self._tick = self._tick, []
        data = b"\n".join(frames) + b"\n"
        with self._condition:
            self._queue.append(data)
            self._queued += len(data)
            self._condition.notify()

    def _wrote(self, size: int) -> None:
        with self._condition:
            self._queued -= size
        if self._queued <= HIGH_WATER // 2:
            self._release()

    def _break(self) -> None:
        self._failed = True
        self.broken.set()
        self._release()

    def _release(self) -> None:
        if self._room is not None and not self._room.done():
            self._room.set_result(None)

    # -- on threads ---------------------------------------------------------------------------------------------------

    def watch_reader(self, stop_fd: int) -> None:
        """Block until nobody reads the descriptor any more, or something arrives on `stop_fd`."""
        poll = select.poll()
        poll.register(self._fd, 0)  # errors and hang-ups are reported without being asked for
        poll.register(stop_fd, select.POLLIN)
        ready = poll.poll()
        if any(fd == self._fd for fd, _ in ready):
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
