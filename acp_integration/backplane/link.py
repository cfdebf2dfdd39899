"""The connection over which one worker writes to another."""

import asyncio
from time import monotonic
from typing import Final

import anyio

from acp_integration.backplane.framing import LENGTH_BYTES, Seal
from acp_integration.backplane.group import Group
from acp_integration.backplane.protocol import WorkerGone

NONCE_BYTES: Final = 16
PONG: Final = b"\x06"

CONNECT_WITHIN: Final = 5.0
"""Seconds that a worker may take to let another one in."""

SEND_WITHIN: Final = 10.0
"""Seconds for which a worker may take nothing while others wait to write to it."""

ANSWER_WITHIN: Final = 5.0
"""Seconds that a worker may take to say that it lives."""

BELIEVED_FOR: Final = 1.0
"""Seconds for which a sign of life is believed."""

_BEHIND: Final = 256 * 1024


def purpose(sender: str, receiver: str, nonce: bytes) -> bytes:
    """What the messages on one connection are sealed for."""
    return f"{sender}>{receiver}>".encode()[:48] + nonce


class Link:
    """Writes to one worker; what comes back says only that it lives."""

    def __init__(self, worker: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, seal: Seal) -> None:
        self.worker = worker
        self._reader = reader
        self._writer = writer
        self._seal = seal
        self._heard_at = monotonic()
        self._heard = anyio.Event()

    @classmethod
    async def connect(cls, group: Group, sender: str, receiver: str) -> "Link":
        """Connect to the socket of a worker, and prove to belong to its group.

        Raises:
            WorkerGone: if nobody listens there, or it does not answer.
        """
        try:
            with anyio.fail_after(CONNECT_WITHIN):
                reader, writer = await asyncio.open_unix_connection(str(group.directory / receiver))
                try:
                    nonce = await reader.readexactly(NONCE_BYTES)
                except BaseException:
                    writer.close()
                    raise
        except (OSError, EOFError, TimeoutError):
            raise WorkerGone(receiver, "it has ended, or does not answer") from None
        name = sender.encode()
        seal = Seal(group.key, purpose(sender, receiver, nonce))
        writer.write(len(name).to_bytes(LENGTH_BYTES, "big") + name + seal.frame(b""))
        return cls(receiver, reader, writer, seal)

    async def send(self, message: bytes) -> None:
        """Write a message; waits while the worker is far behind.

        Raises:
            WorkerGone: if it has ended, or takes nothing for too long.
        """
        transport = self._writer.transport
        if transport.is_closing():
            raise WorkerGone(self.worker, "it has ended")
        self._writer.write(self._seal.frame(message))
        if transport.get_write_buffer_size() <= _BEHIND:
            return
        try:
            with anyio.fail_after(SEND_WITHIN):
                await self._writer.drain()
        except (OSError, TimeoutError):
            transport.abort()
            raise WorkerGone(self.worker, "it takes no messages") from None

    async def answers(self) -> bool:
        """Whether the worker gave a sign of life, now or a moment ago."""
        if monotonic() - self._heard_at < BELIEVED_FOR:
            return True
        heard = self._heard
        await self.send(b"")
        with anyio.move_on_after(ANSWER_WITHIN):
            await heard.wait()
            return not self._writer.transport.is_closing()
        return False

    def close(self) -> None:
        """Hang up; `watch` ends."""
        self._writer.transport.abort()

    async def watch(self) -> None:
        """Take signs of life until the worker has ended."""
        try:
            while await self._reader.read(len(PONG) * 64):
                self._heard_at = monotonic()
                self._tell()
        except OSError:
            pass
        finally:
            self.close()
            self._tell()

    def _tell(self) -> None:
        self._heard.set()
        self._heard = anyio.Event()
