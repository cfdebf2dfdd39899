"""What every transport offers: frames in, frames out. It knows nothing of sessions, turns or handlers."""

from collections.abc import Callable, Sequence
from typing import Literal, Protocol

import msgspec

TransportKind = Literal["stdio", "websocket", "http", "memory"]
RequestId = int | str


class Oversize(msgspec.Struct, frozen=True):
    """Stands in the place of a frame that was larger than allowed and therefore dropped unread.

    Attributes:
        limit: the largest frame accepted, in bytes.
    """

    limit: int


Frame = bytes | Oversize


class Flow(Protocol):
    """Says to those who write when to wait for the reader."""

    @property
    def congested(self) -> bool:
        """Whether a sender should await `drain` before it writes more; may be asked on any thread."""
        ...

    async def drain(self) -> None:
        """Wait until more can be taken; returns at once after a failure."""
        ...


class Transport(Flow, Protocol):
    """Moves whole JSON-RPC messages between this process and one peer.

    A transport belongs to one connection, and every method is called on the event loop that opened it.
    """

    @property
    def kind(self) -> TransportKind:
        """How the peer is reached."""
        ...

    async def open(self) -> None:
        """Start moving frames.

        Raises:
            ConnectionClosed: if the transport was opened before or cannot be opened.
        """
        ...

    async def receive(self) -> Sequence[Frame]:
        """Wait for frames and return all that are here, in order; an empty sequence is the end of input.

        Raises:
            ConnectionClosed: if the transport failed.
        """
        ...

    def write(self, frame: bytes, session: str | None = None, answers: RequestId | None = None) -> None:
        """Queue one frame, without waiting; after the transport was closed or has failed the frame is dropped.

        Args:
            frame: one JSON-RPC message in UTF-8 without a line break.
            session: the session the frame belongs to, for a transport that has a stream for each.
            answers: the id of the peer's request that the frame answers.
        """
        ...

    async def wait_broken(self) -> None:
        """Wait until the peer can no longer read what is written: it hung up, or the transport failed."""
        ...

    async def aclose(self) -> None:
        """Write out what was queued as far as the peer reads it, then release everything; safe to call twice."""
        ...


def flush_of(transport: Transport) -> Callable[[], None]:
    """What lets a transport send now what it was given: its method `flush`, if it has one.

    A transport that gathers what is written in one pass of the loop has that method, for who knows that nothing more
    will be written in it.
    """
    flush: Callable[[], None] | None = getattr(transport, "flush", None)
    return _nothing if flush is None else flush


def delivery_of(transport: Transport) -> Callable[[Callable[[Frame], None] | None], None]:
    """What lets a transport hand frames over as they arrive: its method `deliver`, if it has one.

    That method saves the pass of the loop which wakes whoever awaits `receive`; that then returns only at the end.
    """
    deliver: Callable[[Callable[[Frame], None] | None], None] | None = getattr(transport, "deliver", None)
    return _ignore if deliver is None else deliver


def flow_of(transport: Transport, session: str) -> Flow:
    """What a sender to a session goes by: the transport, or what its method `flow` gives for the session.

    A transport with a stream for each session has that method: one that nobody reads must not hold up the others.
    """
    divided: Callable[[str], Flow] | None = getattr(transport, "flow", None)
    return transport if divided is None else divided(session)


def _nothing() -> None:
    return None


def _ignore(_consume: Callable[[Frame], None] | None) -> None:
    return None
