"""Lines from standard input on the loop: a thread that waits for a person can be neither cancelled nor left behind."""

import os
import sys
from contextlib import suppress
from typing import Final

import anyio

_PIECE: Final = 64 * 1024


class Lines:
    """Reads the lines of a descriptor.

    Args:
        fd: the descriptor, or None for one that has ended.
    """

    def __init__(self, fd: int | None) -> None:
        self._fd = fd
        self._unread = b""

    async def next(self) -> str | None:
        """The next line without its end, or None at the end of input; cancelled, it loses nothing."""
        while b"\n" not in self._unread and self._fd is not None:
            piece = await _read(self._fd)
            self._unread += piece
            if not piece:
                self._fd = None
        if not self._unread:
            return None
        line, _, self._unread = self._unread.partition(b"\n")
        return line.decode(errors="replace").strip()


def standard_input() -> Lines:
    """The lines of this process's standard input."""
    return Lines(None if sys.stdin is None else sys.stdin.fileno())


async def _read(fd: int) -> bytes:
    with suppress(PermissionError):  # a file: it can always be read
        await anyio.wait_readable(fd)
    try:
        return os.read(fd, _PIECE)
    except OSError:  # a terminal that has gone
        return b""
