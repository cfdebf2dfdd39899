"""Frames on their way from whoever writes them to the one task that sends them, on one loop."""

from collections import deque
from typing import Final

import anyio

from acp_integration.transports.transport import RequestId

HIGH_WATER: Final = 1024 * 1024
"""Bytes that wait to be sent before senders are asked to wait."""

Outgoing = tuple[bytes, str | None, RequestId | None]
"""A frame, the session it belongs to, and the request it answers."""


class Outbox:
    """Takes frames without waiting and hands them to the sending task in order."""

    def __init__(self) -> None:
        self._frames: deque[Outgoing] = deque()
        self._size = 0
        self._closed = False
        self._changed = anyio.Event()

    def put(self, frame: bytes, session: str | None, answers: RequestId | None) -> None:
        """Queue a frame; dropped after `close`."""
        if not self._closed:
            self._frames.append((frame, session, answers))
            self._size += len(frame)
            self._notice()

    async def take(self) -> Outgoing | None:
        """The next frame, once there is one; None after `close` when all were taken."""
        while not self._frames and not self._closed:
            await self._wait()
        if not self._frames:
            return None
        outgoing = self._frames.popleft()
        self._size -= len(outgoing[0])
        self._notice()
        return outgoing

    @property
    def congested(self) -> bool:
        """Whether more waits than should."""
        return self._size > HIGH_WATER

    async def drain(self) -> None:
        """Wait until less waits, or until nothing is sent any more."""
        while self.congested and not self._closed:
            await self._wait()

    def close(self) -> None:
        """Take no more frames; those here can still be taken."""
        self._closed = True
        self._notice()

    def abandon(self) -> None:
        """Take no more frames and drop those here."""
        self._frames.clear()
        self._size = 0
        self.close()

    def _notice(self) -> None:
        self._changed.set()

    async def _wait(self) -> None:
        if self._changed.is_set():
            self._changed = anyio.Event()
        await self._changed.wait()
