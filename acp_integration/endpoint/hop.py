"""What workers say to each other: about a request that reached the wrong one of them, and about themselves."""

from typing import Final

import msgspec

Headers = list[tuple[str, str]]


class Call(msgspec.Struct, frozen=True, array_like=True, tag="call"):
    """A request, from the worker that it reached to the one that holds its connection."""

    id: int
    method: str
    principal: str | None
    headers: Headers
    body: bytes


class Gone(msgspec.Struct, frozen=True, array_like=True, tag="gone"):
    """The peer of a call has hung up, or needs no more of its answer."""

    id: int


class Taken(msgspec.Struct, frozen=True, array_like=True, tag="taken"):
    """The server has taken the last part of the answer to a call, and the peer was still there."""

    id: int


class Part(msgspec.Struct, frozen=True, array_like=True, tag="part"):
    """A part of the answer to a call; the first has the status and the headers, the last says so."""

    id: int
    body: bytes
    last: bool
    status: int = 0
    headers: Headers = []


class Ask(msgspec.Struct, frozen=True, array_like=True, tag="ask"):
    """Somebody wants to know what a worker holds."""


class Told(msgspec.Struct, frozen=True, array_like=True, tag="told"):
    """What a worker holds."""

    pid: int
    counters: dict[str, float]


Hop = Call | Gone | Taken | Part | Ask | Told

_ALL_HEADERS: Final = 128 * 1024

_encoder: Final = msgspec.msgpack.Encoder()
_decoder: Final = msgspec.msgpack.Decoder(Hop)


def largest_hop(max_message_size: int) -> int:
    """The size of the largest one, in bytes: as many events as may wait unread, each character of them escaped."""
    return 4 * max_message_size + _ALL_HEADERS


def packed(hop: Hop) -> bytes:
    """As it travels."""
    return _encoder.encode(hop)


def unpacked(message: bytes) -> Hop:
    """What travelled.

    Raises:
        msgspec.DecodeError: if it is nothing of this kind.
    """
    return _decoder.decode(message)
