"""A real terminal, with the process in it as its session's leader, so that Ctrl-C is a signal."""

import fcntl
import os
import pty
import re
import select
import subprocess
import termios
import time
from collections.abc import Callable

COLOURS = re.compile(r"\x1b\[[0-9;]*m")


class Screen:
    """What a person at a terminal sees and types."""

    def __init__(self, start: Callable[..., "subprocess.Popen[bytes]"]) -> None:
        self._end, there = pty.openpty()
        self._seen = ""
        self.process = start(stdin=there, stdout=there, stderr=there, preexec_fn=_own_the_terminal)
        os.close(there)

    @property
    def seen(self) -> str:
        return COLOURS.sub("", self._seen).replace("\r\n", "\n")

    def type(self, text: str) -> None:
        os.write(self._end, text.encode())

    def interrupt(self) -> None:
        self.type("\x03")

    def wait_for(self, text: str, bound: float = 30) -> None:
        """Read until the text is seen."""
        until = time.monotonic() + bound
        while text not in self.seen:
            assert self._read(until), f"{text!r} was not seen in {self.seen!r}"

    def end(self, bound: float = 30) -> int:
        """Read until the process has closed the terminal, and give its exit code."""
        until = time.monotonic() + bound
        while self._read(until):
            pass
        return self.process.wait(max(0.1, until - time.monotonic()))

    def close(self) -> None:
        os.close(self._end)

    def _read(self, until: float) -> bool:
        ready, _, _ = select.select([self._end], [], [], max(0.0, until - time.monotonic()))
        try:
            piece = os.read(self._end, 65536) if ready else b""
        except OSError:  # nobody holds the other end any more
            piece = b""
        self._seen += piece.decode(errors="replace")
        return bool(piece)


def _own_the_terminal() -> None:
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)
