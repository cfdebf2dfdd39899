"""Reads a file descriptor for an event loop: on the loop where it can be watched, on a thread of its own elsewhere."""

import asyncio
import contextlib
import os
import select
import stat
import threading
from collections.abc import Callable
from typing import Final, Protocol

READ_SIZE: Final = 64 * 1024

Consume = Callable[[bytes], None]
"""Takes what was read, on the loop; nothing at the end."""


class Input(Protocol):
    """One descriptor that is read; all methods are called on the loop."""

    def start(self) -> None:
        """Begin to read."""

    def pause(self) -> None:
        """Read no more than what is under way."""

    def resume(self) -> None:
        """Read again."""

    async def aclose(self) -> None:
        """Read no more, ever."""


def is_watchable(fd: int) -> bool:
    """Whether an event loop can wait for a descriptor without making it non-blocking for everybody who shares it.

    True for pipes and sockets; files and the null device cannot be watched, and of a terminal others may read too.
    """
    mode = os.fstat(fd).st_mode
    return stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode)


def input_of(fd: int, loop: asyncio.AbstractEventLoop, consume: Consume) -> Input:
    """What reads a descriptor, not yet started."""
    return WatchedInput(fd, loop, consume) if is_watchable(fd) else InputThread(fd, loop, consume)


class WatchedInput:
    """Reads when the loop says that there is something."""

    def __init__(self, fd: int, loop: asyncio.AbstractEventLoop, consume: Consume) -> None:
        self._fd = fd
        self._loop = loop
        self._consume = consume
        self._ended = False

    def start(self) -> None:
        """Watch the descriptor."""
        self.resume()

    def pause(self) -> None:
        """Watch it no more for now."""
        self._loop.remove_reader(self._fd)

    def resume(self) -> None:
        """Watch it again, unless there is nothing to come."""
        if not self._ended:
            self._loop.add_reader(self._fd, self._read)

    async def aclose(self) -> None:
        """Watch it no more."""
        self._end()

    def _read(self) -> None:
        try:
            data = os.read(self._fd, READ_SIZE)
        except BlockingIOError:  # non-blocking by its other owner, and empty after all
            return
        except OSError:  # a socket whose peer is gone
            data = b""
        if not data:
            self._end()
        self._consume(data)

    def _end(self) -> None:
        self._ended = True
        self.pause()


class InputThread:
    """Reads in blocking calls, the next when the loop has taken what the last one gave."""

    def __init__(self, fd: int, loop: asyncio.AbstractEventLoop, consume: Consume) -> None:
        self._fd = fd
        self._loop = loop
        self._consume = consume
        self._paused = False
        self._room = threading.Event()
        self._stop_read, self._stop_write = os.pipe()
        self._thread = threading.Thread(target=self._run, name="acp-stdin", daemon=True)

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def pause(self) -> None:
        """Let the thread wait."""
        self._paused = True

    def resume(self) -> None:
        """Let the thread go on."""
        self._paused = False
        self._room.set()

    async def aclose(self) -> None:
        """End the thread."""
        os.write(self._stop_write, b"x")
        self._room.set()
        await asyncio.shield(self._loop.run_in_executor(None, self._thread.join))
        os.close(self._stop_read)
        os.close(self._stop_write)

    def _arrive(self, data: bytes) -> None:
        self._consume(data)
        if not self._paused:
            self._room.set()

    # -- on the thread ------------------------------------------------------------------------------------------------

    def _run(self) -> None:
        poll = select.poll()
        poll.register(self._fd, select.POLLIN)
        poll.register(self._stop_read, select.POLLIN)
        while self._stop_read not in {fd for fd, _ in poll.poll()}:
            data = self._read()
            self._room.clear()
            with contextlib.suppress(RuntimeError):  # the loop is closed: nobody listens any more
                self._loop.call_soon_threadsafe(self._arrive, data)
            if not data:
                return
            self._room.wait()

    def _read(self) -> bytes:
        while True:
            try:
                return os.read(self._fd, READ_SIZE)
            except BlockingIOError:  # the descriptor's other owner made it non-blocking
                select.select([self._fd], [], [])
            except OSError:  # a terminal that hung up
                return b""
