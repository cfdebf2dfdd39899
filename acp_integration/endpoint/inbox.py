"""Frames from the peer in the order they were received; when it is full, who brings the next one waits."""

from collections import deque
from collections.abc import Sequence
from typing import Final

import anyio

from acp_integration.errors import ConnectionClosed

CAPACITY: Final = 256


class Inbox:
    """What was received and not yet taken, bounded in frames and in bytes."""

    def __init__(self, max_bytes: int) -> None:
        self._frames: deque[bytes] = deque()
        self._bytes = 0
        self._max_bytes = max_bytes
        self._closed = False
        self._turn = anyio.Lock()
        self._changed = anyio.Event()

    def offer(self, frame: bytes) -> bool:
        """Give a frame its place if nobody has to wait for one; says whether it has it."""
        if self._closed or self._turn.locked() or self._is_full():
            return False
        self._append(frame)
        return True

    async def put(self, frame: bytes) -> None:
        """Give a frame its place, behind those of everybody who waits already.

        Raises:
            ConnectionClosed: if the connection ends before there is a place.
        """
        async with self._turn:
            while self._is_full() and not self._closed:
                await self._changed.wait()
            if self._closed:
                raise ConnectionClosed
            self._append(frame)

    async def take(self) -> Sequence[bytes]:
        """Wait for frames and take all of them; an empty sequence is the end."""
        while not self._frames and not self._closed:
            await self._changed.wait()
        frames = tuple(self._frames)
        self._frames.clear()
        self._bytes = 0
        self._wake()
        return frames

    def close(self) -> None:
        """Accept no more; what is here can still be taken."""
        self._closed = True
        self._wake()

    def _append(self, frame: bytes) -> None:
        self._frames.append(frame)
        self._bytes += len(frame)
        self._wake()

    def _is_full(self) -> bool:
        return len(self._frames) >= CAPACITY or self._bytes >= self._max_bytes

    def _wake(self) -> None:
        self._changed.set()
        self._changed = anyio.Event()
