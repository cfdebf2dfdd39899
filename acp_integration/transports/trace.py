"""Records every frame of a transport in a file, to see why a peer is unhappy; secrets are masked."""

import re
import time
from collections.abc import Sequence
from typing import Final

from acp_integration.transports.transport import Frame, Oversize, RequestId, Transport, TransportKind

_SECRET_NAMES: Final = (
    rb"(?:[a-z0-9_.-]*(?:token|secret|password|passwd|api[_-]?key|authorization|credential|cookie)[a-z0-9_.-]*)"
)
_STRING: Final = rb'"(?:[^"\\]|\\.)*"'
_SECRET_FIELD: Final = re.compile(rb'("%b"\s*:\s*)%b' % (_SECRET_NAMES, _STRING), re.IGNORECASE)
# Environment variables and HTTP headers travel as {"name": ..., "value": ...}: every value is masked.
_NAMED_VALUE: Final = re.compile(rb'("name"\s*:\s*%b\s*,\s*"value"\s*:\s*)%b' % (_STRING, _STRING))
_MASK: Final = rb'\1"***"'


class TracedTransport:
    """A transport that writes down what goes through it."""

    def __init__(self, transport: Transport, path: str) -> None:
        self._transport = transport
        self._file = open(path, "ab")  # noqa: SIM115  # open for as long as the transport
        self._started = time.monotonic()

    @property
    def kind(self) -> TransportKind:
        """That of the transport."""
        return self._transport.kind

    async def open(self) -> None:
        """Open the transport."""
        await self._transport.open()

    async def receive(self) -> Sequence[Frame]:
        """Receive, and write down what came."""
        frames = await self._transport.receive()
        for frame in frames:
            self._record(b"<-", b"a frame over %d bytes" % frame.limit if isinstance(frame, Oversize) else frame)
        return frames

    def write(self, frame: bytes, session: str | None = None, answers: RequestId | None = None) -> None:
        """Write, and write down what went."""
        self._record(b"->", frame)
        self._transport.write(frame, session, answers)

    @property
    def congested(self) -> bool:
        """Whether the transport is."""
        return self._transport.congested

    async def drain(self) -> None:
        """Drain the transport."""
        await self._transport.drain()

    async def wait_broken(self) -> None:
        """Wait for the transport to break."""
        await self._transport.wait_broken()

    async def aclose(self) -> None:
        """Close the transport and the file."""
        await self._transport.aclose()
        self._file.close()

    def _record(self, direction: bytes, frame: bytes) -> None:
        if not self._file.closed:
            self._file.write(b"%.3f %b %b\n" % (time.monotonic() - self._started, direction, masked(frame)))
            self._file.flush()


def masked(frame: bytes) -> bytes:
    """The frame with the values of fields whose names speak of secrets replaced."""
    return _NAMED_VALUE.sub(_MASK, _SECRET_FIELD.sub(_MASK, frame))
