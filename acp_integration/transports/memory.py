"""Two transports of one process that are each other's peer: for tests, and for driving an agent without a process."""

from collections import deque
from collections.abc import Sequence
from typing import Final

import anyio

from acp_integration.errors import ConnectionClosed
from acp_integration.transports.transport import Frame, RequestId, TransportKind

HIGH_WATER: Final = 1024
"""Frames that wait for the reader before a sender is asked to wait."""


class _Pipe:
    """Frames in one direction."""

    def __init__(self) -> None:
        self.frames: deque[Frame] = deque()
        self.arrived = anyio.Event()
        self.taken = anyio.Event()
        self.writer_closed = False
        self.reader_closed = anyio.Event()

    def put(self, frame: Frame) -> None:
        if not self.writer_closed and not self.reader_closed.is_set():
            self.frames.append(frame)
            self.arrived.set()

    def close_writer(self) -> None:
        self.writer_closed = True
        self.arrived.set()

    def close_reader(self) -> None:
        self.reader_closed.set()
        self.frames.clear()
        self.arrived.set()
        self.taken.set()

    async def take(self) -> Sequence[Frame]:
        while not self.frames:
            if self.writer_closed or self.reader_closed.is_set():
                return ()
            self.arrived = anyio.Event()
            await self.arrived.wait()
        batch = tuple(self.frames)
        self.frames.clear()
        self.taken.set()
        return batch

    async def wait_taken(self) -> None:
        while len(self.frames) >= HIGH_WATER and not self.reader_closed.is_set():
            self.taken = anyio.Event()
            await self.taken.wait()


class MemoryTransport:
    """One end of a pair; made by `memory_transport_pair`."""

    kind: TransportKind = "memory"

    def __init__(self, incoming: _Pipe, outgoing: _Pipe) -> None:
        self._incoming = incoming
        self._outgoing = outgoing
        self._opened = False

    async def open(self) -> None:
        """Start moving frames; one connection can use this end."""
        if self._opened:
            raise ConnectionClosed("This transport serves a connection already: make another pair")
        self._opened = True

    async def receive(self) -> Sequence[Frame]:
        """All frames that are here, once there is one; nothing at the end of input."""
        return await self._incoming.take()

    def write(self, frame: bytes, session: str | None = None, answers: RequestId | None = None) -> None:  # noqa: ARG002  # one stream for all
        """Queue a frame for the other end."""
        self._outgoing.put(frame)

    @property
    def congested(self) -> bool:
        """Whether the other end lags behind."""
        return len(self._outgoing.frames) >= HIGH_WATER

    async def drain(self) -> None:
        """Wait for the other end to catch up."""
        await self._outgoing.wait_taken()

    async def wait_broken(self) -> None:
        """Wait until the other end was closed."""
        await self._outgoing.reader_closed.wait()

    def end_input(self) -> None:
        """Tell the other end that nothing more comes, and go on reading: a half-close."""
        self._outgoing.close_writer()

    async def aclose(self) -> None:
        """Close both directions of this end; what was written stays readable."""
        self._outgoing.close_writer()
        self._incoming.close_reader()


def memory_transport_pair() -> tuple[MemoryTransport, MemoryTransport]:
    """Make two connected transports: the client's end and the agent's end."""
    to_agent, to_client = _Pipe(), _Pipe()
    return MemoryTransport(to_client, to_agent), MemoryTransport(to_agent, to_client)
