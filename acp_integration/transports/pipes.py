"""Threads that move bytes between pipes and an event loop, with back-pressure in both directions.

Threads rather than the loop's own pipes, because those need a loop that can watch file descriptors.
"""

import asyncio
import os
import select
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Final

from acp_integration.transports.transport import Frame

CHUNK: Final = 65536
HIGH_WATER: Final = 1024 * 1024
LAST_CHUNKS: Final = 64
"""How much is still read of a pipe whose writer is gone while somebody else keeps it open, in chunks."""


class Inbox:
    """Frames on their way from a reading thread to the loop; the thread waits while too many bytes are unread."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._changed = threading.Condition()
        self._arrived = asyncio.Event()
        self._frames: list[Frame] = []
        self._size = 0
        self._ended = False
        self._closed = False

    def put(self, frames: Sequence[Frame], size: int) -> None:
        """Hand frames over, from the thread; after `close` they are dropped."""
        with self._changed:
            self._changed.wait_for(lambda: self._size < HIGH_WATER or self._closed)
            if self._closed:
                return
            self._frames += frames
            self._size += size
        call_soon(self._loop, self._arrived.set)

    def end(self) -> None:
        """Nothing more comes; from the thread."""
        with self._changed:
            self._ended = True
        call_soon(self._loop, self._arrived.set)

    def close(self) -> None:
        """Nobody takes any more: what is here is dropped and the thread waits no longer."""
        with self._changed:
            self._closed = self._ended = True
            self._frames = []
            self._changed.notify_all()
        self._arrived.set()

    async def take(self) -> Sequence[Frame]:
        """Everything that is here, once there is something; nothing at the end."""
        while True:
            with self._changed:
                frames, self._frames, self._size = self._frames, [], 0
                self._changed.notify_all()
                if frames or self._ended:
                    return frames
                self._arrived.clear()
            await self._arrived.wait()


class PipeReader:
    """A thread that reads a pipe to its end, or to what is there when `gone` becomes readable, and closes it."""

    def __init__(
        self, fd: int, gone: int, consume: Callable[[bytes], None], ended: Callable[[], None], name: str
    ) -> None:
        self._fd = fd
        self._gone = gone
        self._consume = consume
        self._ended = ended
        self.thread = threading.Thread(target=self._run, name=name, daemon=True)
        self.thread.start()

    def _run(self) -> None:
        try:
            (self._read_until_gone if hasattr(select, "poll") else self._read)()
        finally:
            os.close(self._fd)
            self._ended()

    def _read(self) -> None:
        while chunk := os.read(self._fd, CHUNK):
            self._consume(chunk)

    def _read_until_gone(self) -> None:
        poller = select.poll()
        poller.register(self._fd, select.POLLIN)
        poller.register(self._gone, select.POLLIN)
        while (ready := {fd for fd, _ in poller.poll()}) == {self._fd}:
            if not self._read_chunk():
                return
        if self._fd in ready or self._gone in ready:
            self._read_rest()

    def _read_rest(self) -> None:
        poller = select.poll()
        poller.register(self._fd, select.POLLIN)
        for _ in range(LAST_CHUNKS):
            if not poller.poll(0) or not self._read_chunk():
                return

    def _read_chunk(self) -> bool:
        chunk = os.read(self._fd, CHUNK)
        if chunk:
            self._consume(chunk)
        return bool(chunk)


class PipeWriter:
    """A thread that writes what the loop queues, joined into few writes, and closes the pipe in the end."""

    def __init__(self, fd: int, gone: int, name: str) -> None:
        self._loop = asyncio.get_running_loop()
        self._fd = fd
        self._gone = gone
        self._changed = threading.Condition()
        self._queue: list[bytes] = []
        self._size = 0
        self._closing = False
        self._taken = asyncio.Event()
        self.broken = asyncio.Event()
        self.thread = threading.Thread(target=self._run, name=name, daemon=True)
        self.thread.start()

    def write(self, data: bytes) -> None:
        """Queue bytes, from the loop; dropped once the pipe is closed or broken."""
        with self._changed:
            if not self._closing:
                self._queue.append(data)
                self._size += len(data)
                self._changed.notify_all()

    @property
    def congested(self) -> bool:
        """Whether more is queued than should be."""
        return self._size > HIGH_WATER

    async def drain(self) -> None:
        """Wait until less is queued, or until nobody reads any more."""
        while self.congested and not self.broken.is_set():
            self._taken.clear()
            await self._taken.wait()

    def close(self) -> None:
        """Write what is queued, then close the pipe."""
        with self._changed:
            self._closing = True
            self._changed.notify_all()

    def _run(self) -> None:
        try:
            while batch := self._next_batch():
                self._write_all(memoryview(batch))
                with self._changed:
                    self._size -= len(batch)
                call_soon(self._loop, self._taken.set)
        except OSError:
            pass  # the reader is gone: that is what `broken` says
        finally:
            self._give_up()

    def _give_up(self) -> None:
        with self._changed:
            self._closing = True
            self._queue, self._size = [], 0
        with suppress(OSError):
            os.close(self._fd)
        call_soon(self._loop, self._taken.set)
        call_soon(self._loop, self.broken.set)

    def _next_batch(self) -> bytes:
        with self._changed:
            self._changed.wait_for(lambda: self._queue or self._closing)
            batch, self._queue = b"".join(self._queue), []
            return batch

    def _write_all(self, data: memoryview) -> None:
        if not hasattr(select, "poll"):
            while data:
                data = data[os.write(self._fd, data) :]
            return
        os.set_blocking(self._fd, False)
        while data:
            self._wait_writable()
            with suppress(BlockingIOError):
                data = data[os.write(self._fd, data) :]

    def _wait_writable(self) -> None:
        poller = select.poll()
        poller.register(self._fd, select.POLLOUT)
        poller.register(self._gone, select.POLLIN)
        if self._fd not in dict(poller.poll()):
            raise BrokenPipeError


def call_soon(loop: asyncio.AbstractEventLoop, callback: Callable[[], object]) -> None:
    """Call on the loop, from a thread; nothing happens when the loop is closed already."""
    with suppress(RuntimeError):
        loop.call_soon_threadsafe(callback)
