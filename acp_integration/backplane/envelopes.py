"""Messages that wait in a mailbox which others can reach too: who wrote them, in which order, and proof of both."""

import hashlib
import hmac
import secrets
from typing import Final

import msgspec

_TAG_BYTES: Final = 16
_RUN_BYTES: Final = 8


class Envelope(msgspec.Struct, frozen=True, array_like=True):
    """A message in the mailbox of a worker; the numbers of each run of its sender begin with one."""

    sender: str
    run: bytes
    number: int
    message: bytes
    tag: bytes


_encoder: Final = msgspec.msgpack.Encoder()
_decoder: Final = msgspec.msgpack.Decoder(Envelope)


class Sealer:
    """Numbers and seals what one worker writes to another.

    Args:
        key: the secret that the workers share.
        sender: who writes.
        receiver: to whom.
    """

    def __init__(self, key: bytes, sender: str, receiver: str) -> None:
        self._key, self._sender, self._receiver = key, sender, receiver
        self._run, self._number = secrets.token_bytes(_RUN_BYTES), 0

    def seal(self, message: bytes) -> bytes:
        """The next message, as it is put into the mailbox."""
        self._number += 1
        envelope = Envelope(self._sender, self._run, self._number, message, b"")
        return _encoder.encode(msgspec.structs.replace(envelope, tag=_tag(self._key, self._receiver, envelope)))


class Opener:
    """Opens what others wrote to one worker: each message once, in order, and says where some are missing.

    Args:
        key: the secret that the workers share.
        receiver: whose mailbox it is.
    """

    def __init__(self, key: bytes, receiver: str) -> None:
        self._key, self._receiver = key, receiver
        self._last: dict[tuple[str, bytes], int] = {}

    def open(self, sealed: bytes) -> Envelope | None:
        """The message, None if it was opened before.

        Raises:
            msgspec.DecodeError: if it is no message.
            PermissionError: if no holder of the key wrote it to this worker.
        """
        envelope = _decoder.decode(sealed)
        if not hmac.compare_digest(_tag(self._key, self._receiver, envelope), envelope.tag):
            raise PermissionError
        return envelope if envelope.number > self._last.get((envelope.sender, envelope.run), 0) else None

    def misses(self, envelope: Envelope) -> bool:
        """Whether messages before this one, which counts as read now, never came."""
        run = envelope.sender, envelope.run
        expected = self._last.get(run, 0) + 1
        self._last[run] = envelope.number
        return envelope.number != expected

    @property
    def senders(self) -> set[str]:
        """Everybody who has written."""
        return {sender for sender, _ in self._last}


def proof_of(key: bytes, worker: str) -> bytes:
    """Says for a worker, to whoever holds the key too, that it holds the key."""
    return hashlib.blake2b(worker.encode(), key=key, digest_size=_TAG_BYTES, person=b"alive").digest()


def _tag(key: bytes, receiver: str, envelope: Envelope) -> bytes:
    head = _encoder.encode((receiver, envelope.sender, envelope.run, envelope.number))
    return hashlib.blake2b(head + envelope.message, key=key, digest_size=_TAG_BYTES).digest()
