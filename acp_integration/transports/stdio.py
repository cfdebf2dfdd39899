"""Frames as lines on two file descriptors: pipes, files, sockets, terminals and the null device alike.

One thread reads and one writes, both bounded, because the event loop's own pipe transports refuse files and the null
device and leave shared descriptors non-blocking.
"""

import asyncio
import contextlib
import os
import select
import threading
from collections.abc import Sequence
from typing import Final

from acp_integration.errors import ConnectionClosed
from acp_integration.options import RuntimeOptions
from acp_integration.transports.guard import StandardStreams
from acp_integration.transports.lines import LineSplitter
from acp_integration.transports.output import OutputThread
from acp_integration.transports.transport import Frame, RequestId, TransportKind

READ_SIZE: Final = 64 * 1024
INBOX_BYTES: Final = 1024 * 1024
"""Unread input at which the reading thread waits for the loop."""


class StdioTransport:
    """One peer on a pair of file descriptors, which it owns from now on."""

    kind: TransportKind = "stdio"

    def __init__(self, streams: StandardStreams, max_message_size: int = RuntimeOptions().max_message_size) -> None:
        self._read_fd = streams.read_fd
        self._output = OutputThread(streams.write_fd)
        self._lines = LineSplitter(max_message_size)
        self._wake_read, self._wake_write = os.pipe()
        self._thread: threading.Thread | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._inbox: list[Frame] = []
        self._inbox_bytes = 0
        self._room = threading.Event()
        self._arrived: asyncio.Future[None] | None = None
        self._ended = False
        self._closed = False

    async def open(self) -> None:
        """Start the two threads."""
        if self._thread is not None:
            raise ConnectionClosed("This transport serves a connection already")
        self._loop = asyncio.get_running_loop()
        self._output.start(self._loop)
        self._thread = threading.Thread(target=self._read, name="acp-stdin", daemon=True)
        self._thread.start()

    async def receive(self) -> Sequence[Frame]:
        """All lines that are here, once there is one; nothing at the end of input."""
        while not self._inbox:
            if self._ended:
                return ()
            self._arrived = asyncio.get_running_loop().create_future()
            await self._arrived
        frames, self._inbox = self._inbox, []
        self._inbox_bytes = 0
        self._room.set()
        return frames

    def write(self, frame: bytes, session: str | None = None, answers: RequestId | None = None) -> None:  # noqa: ARG002  # one stream for all
        """Queue one line."""
        self._output.write(frame)

    @property
    def congested(self) -> bool:
        """Whether the peer reads more slowly than we write."""
        return self._output.congested

    async def drain(self) -> None:
        """Wait for the peer to read."""
        await self._output.drain()

    async def wait_broken(self) -> None:
        """Wait until nobody reads what is written; watched from the end of input on, and at every write."""
        await self._output.broken.wait()

    async def aclose(self) -> None:
        """Write out what is queued, end both threads, close both descriptors."""
        if self._closed:
            return
        self._closed = True
        await self._output.aclose()
        os.write(self._wake_write, b"x")
        self._room.set()
        thread = self._thread
        if thread is not None:
            await asyncio.shield(asyncio.get_running_loop().run_in_executor(None, thread.join))
        for fd in (self._read_fd, self._wake_read, self._wake_write):
            os.close(fd)
        self._output.close_fd()

    # -- on the reading thread ----------------------------------------------------------------------------------------

    def _read(self) -> None:
        poll = select.poll()
        poll.register(self._read_fd, select.POLLIN)
        poll.register(self._wake_read, select.POLLIN)
        while True:
            ready = {fd for fd, _ in poll.poll()}
            if self._wake_read in ready:
                return
            data = self._read_some()
            if not data:
                break
            self._hand_over(self._lines.feed(data), len(data))
            if self._closed:
                return
        self._hand_over(self._lines.finish(), 0)
        self._tell(self._end)
        self._output.watch_reader(self._wake_read)

    def _read_some(self) -> bytes:
        while True:
            try:
                return os.read(self._read_fd, READ_SIZE)
            except BlockingIOError:  # the descriptor's other owner made it non-blocking
                select.select([self._read_fd], [], [])
            except OSError:  # a terminal that hung up
                return b""

    def _hand_over(self, frames: list[Frame], size: int) -> None:
        if frames:
            self._tell(self._arrive, frames, size)
            while self._full():
                self._room.clear()
                if self._full():
                    self._room.wait()

    def _full(self) -> bool:
        return self._inbox_bytes > INBOX_BYTES and not self._closed

    def _tell(self, function: object, *arguments: object) -> None:
        assert self._loop is not None
        with contextlib.suppress(RuntimeError):  # the loop is closed: nobody listens any more
            self._loop.call_soon_threadsafe(function, *arguments)  # type: ignore[arg-type]

    # -- on the loop --------------------------------------------------------------------------------------------------

    def _arrive(self, frames: list[Frame], size: int) -> None:
        self._inbox.extend(frames)
        self._inbox_bytes += size
        self._wake()

    def _end(self) -> None:
        self._ended = True
        self._wake()

    def _wake(self) -> None:
        if self._arrived is not None and not self._arrived.done():
            self._arrived.set_result(None)


def stdio_transport(
    streams: StandardStreams, max_message_size: int = RuntimeOptions().max_message_size
) -> StdioTransport:
    """A transport on descriptors that `guard_standard_streams` took, or on any pair of descriptors.

    Args:
        streams: the descriptors, owned by the transport from now on.
        max_message_size: the largest line accepted, in bytes.
    """
    return StdioTransport(streams, max_message_size)
