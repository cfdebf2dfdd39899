"""Messages as they travel between two workers: their length, proof of who wrote them, and the message."""

import hashlib
import hmac
from typing import Final

LENGTH_BYTES: Final = 4
TAG_BYTES: Final = 16


class Forged(Exception):
    """A message was not written by a worker of the group, or not at this place."""


class Seal:
    """Proves, message by message, that one direction of one connection comes from a holder of the group's key.

    Each proof covers the number of its message, so that none can be left out, repeated or moved elsewhere.

    Args:
        key: the secret of the group.
        purpose: what the messages are for: who writes to whom, on which connection.
    """

    def __init__(self, key: bytes, purpose: bytes) -> None:
        self._key = hashlib.blake2b(purpose, key=key[: hashlib.blake2b.MAX_KEY_SIZE], digest_size=32).digest()
        self._count = 0

    def frame(self, message: bytes) -> bytes:
        """The next message as it travels."""
        return (TAG_BYTES + len(message)).to_bytes(LENGTH_BYTES, "big") + self._next_tag(message) + message

    def open(self, sealed: bytes) -> bytes:
        """The next message out of what came after its length.

        Raises:
            Forged: if it is not the next one that a holder of the key wrote here.
        """
        message = sealed[TAG_BYTES:]
        if not hmac.compare_digest(self._next_tag(message), sealed[:TAG_BYTES]):
            raise Forged
        return message

    def _next_tag(self, message: bytes) -> bytes:
        tag = hashlib.blake2b(self._count.to_bytes(8, "big"), key=self._key, digest_size=TAG_BYTES)
        self._count += 1
        tag.update(message)
        return tag.digest()
