"""Frames on their way from the tasks that read them to the one that receives them, on one loop."""

from collections.abc import Sequence
from typing import Final

import anyio

from acp_integration.errors import ConnectionClosed

HIGH_WATER: Final = 1024 * 1024
"""Unread bytes at which the reading tasks wait."""


class Arrivals:
    """Makes whoever reads wait while too much is unread."""

    def __init__(self) -> None:
        self._frames: list[bytes] = []
        self._size = 0
        self._failure: ConnectionClosed | None = None
        self._changed = anyio.Event()
        self.ended = anyio.Event()

    async def put(self, frame: bytes) -> None:
        """Hand a frame over, once there is room."""
        while self._size > HIGH_WATER and not self.ended.is_set():
            await self._wait()
        self._frames.append(frame)
        self._size += len(frame)
        self._changed.set()

    async def take(self) -> Sequence[bytes]:
        """All frames that are here, once there is one; nothing at the end.

        Raises:
            ConnectionClosed: at the end, if that was a failure.
        """
        while not self._frames:
            if self._failure is not None:
                raise self._failure
            if self.ended.is_set():
                return ()
            await self._wait()
        frames, self._frames, self._size = self._frames, [], 0
        self._changed.set()
        return frames

    def end(self, failure: ConnectionClosed | None = None) -> None:
        """Nothing more comes; the first call decides why."""
        if not self.ended.is_set():
            self._failure = failure
            self.ended.set()
            self._changed.set()

    async def _wait(self) -> None:
        if self._changed.is_set():
            self._changed = anyio.Event()
        await self._changed.wait()
