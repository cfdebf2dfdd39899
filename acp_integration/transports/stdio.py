"""Frames as lines on two file descriptors: pipes, files, sockets, terminals and the null device alike.

The event loop's own pipe transports would refuse files and the null device and leave shared descriptors non-blocking.
"""

import asyncio
import os
from collections.abc import Callable, Sequence
from typing import Final

from acp_integration.errors import ConnectionClosed
from acp_integration.options import RuntimeOptions
from acp_integration.transports.guard import StandardStreams
from acp_integration.transports.input import Input, input_of
from acp_integration.transports.lines import LineSplitter
from acp_integration.transports.output import Output
from acp_integration.transports.transport import Flow, Frame, RequestId, TransportKind

INBOX_BYTES: Final = 1024 * 1024
"""Unread input at which no more is read."""


class StdioTransport:
    """One peer on a pair of file descriptors, which it owns from now on."""

    kind: TransportKind = "stdio"

    def __init__(self, streams: StandardStreams, max_message_size: int = RuntimeOptions().max_message_size) -> None:
        self._read_fd = streams.read_fd
        self._output = Output(streams.write_fd)
        self._lines = LineSplitter(max_message_size)
        self._input: Input | None = None
        self._inbox: list[Frame] = []
        self._inbox_bytes = 0
        self._full = False
        self._arrived: asyncio.Future[None] | None = None
        self._consume: Callable[[Frame], None] | None = None
        self._ended = False
        self._closed = False

    async def open(self) -> None:
        """Start to read and to write."""
        if self._input is not None:
            raise ConnectionClosed("This transport serves a connection already")
        loop = asyncio.get_running_loop()
        self._output.start(loop)
        self._input = input_of(self._read_fd, loop, self._take)
        self._input.start()

    def deliver(self, consume: Callable[[Frame], None] | None) -> None:
        """Hand every frame over when it is read, until told None, instead of keeping it for `receive`.

        What `consume` raises is raised by `receive`.
        """
        self._consume = consume

    async def receive(self) -> Sequence[Frame]:
        """All lines that are here, once there is one; nothing at the end of input."""
        while not self._inbox:
            if self._ended:
                return ()
            self._arrived = asyncio.get_running_loop().create_future()
            await self._arrived
        frames, self._inbox = self._inbox, []
        self._inbox_bytes = 0
        if self._full and self._input is not None and not self._closed:
            self._full = False
            self._input.resume()
        return frames

    def write(self, frame: bytes, session: str | None = None, answers: RequestId | None = None) -> None:  # noqa: ARG002  # one stream for all
        """Queue one line."""
        self._output.write(frame)

    def flush(self) -> None:
        """Write what is queued now, not when the loop comes to it."""
        self._output.flush()

    def flow(self, session: str) -> Flow:  # noqa: ARG002  # one stream for all
        """Who says when to wait for the reader."""
        return self._output

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
        """Write out what is queued, stop reading, close both descriptors."""
        if self._closed:
            return
        self._closed = True
        await self._output.aclose()
        if self._input is not None:
            await self._input.aclose()
        os.close(self._read_fd)

    def _take(self, data: bytes) -> None:
        if self._closed:
            return
        if data:
            frames = self._lines.feed(data)
        else:
            frames = self._lines.finish()
            self._ended = True
            self._output.watch_reader()
        if self._consume is not None and not self._inbox:
            self._hand_over(frames, self._consume)
            frames = []
        self._inbox.extend(frames)
        self._inbox_bytes += len(data) if frames else 0
        if self._inbox_bytes > INBOX_BYTES and self._input is not None:
            self._full = True
            self._input.pause()
        if (frames or self._ended) and self._arrived is not None and not self._arrived.done():
            self._arrived.set_result(None)

    def _hand_over(self, frames: Sequence[Frame], consume: Callable[[Frame], None]) -> None:
        try:
            for frame in frames:
                consume(frame)
        except Exception as error:
            if self._arrived is None or self._arrived.done():
                raise
            self._arrived.set_exception(error)  # as if whoever awaits the frames had taken them himself


def stdio_transport(
    streams: StandardStreams, max_message_size: int = RuntimeOptions().max_message_size
) -> StdioTransport:
    """A transport on descriptors that `guard_standard_streams` took, or on any pair of descriptors.

    Args:
        streams: the descriptors, owned by the transport from now on.
        max_message_size: the largest line accepted, in bytes.
    """
    return StdioTransport(streams, max_message_size)
