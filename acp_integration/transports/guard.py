"""Keeps standard input and output for the protocol, before any code of the application is imported.

Imports next to nothing, because it has to run first.
"""

import contextlib
import os
import sys
from typing import NamedTuple


class StandardStreams(NamedTuple):
    """Private copies of the process's standard input and output; child processes do not inherit them."""

    read_fd: int
    write_fd: int


def guard_standard_streams() -> StandardStreams:
    """Take fd 0 and 1 for the protocol.

    From then on fd 0 is the null device, so that neither the application nor a child eats frames, and fd 1 goes where
    fd 2 goes, so that whatever is printed, logged or written from C lands beside the log and not between frames.
    """
    null = os.open(os.devnull, os.O_RDWR)
    for fd in (0, 1, 2):
        with contextlib.suppress(OSError):
            os.fstat(fd)
            continue
        os.dup2(null, fd)  # an editor may have started the process without it
    streams = StandardStreams(os.dup(0), os.dup(1))
    os.dup2(null, 0)
    os.dup2(2, 1)
    os.close(null)
    if sys.stdout is not None:
        # What was printed before and is still buffered goes to fd 1 now, which is no longer the protocol's.
        sys.stdout.flush()
        # A new object: the old one may believe that it writes a file, in an encoding that cannot hold all text.
        encoding = sys.stdout.encoding
        sys.stdout = open(1, "w", encoding=encoding, errors="backslashreplace", buffering=1, closefd=False)  # noqa: SIM115  # for good
    return streams
