"""How much can be written to a descriptor at once without blocking.

Where poll sees room, PIPE_BUF bytes fit. An empty pipe takes all that it can hold, and Linux says how much that is.
"""

import select
import sys
from typing import Final

PIPE_BUF: Final[int] = getattr(select, "PIPE_BUF", 512)  # what Windows lacks, POSIX promises

if sys.platform == "linux":
    from fcntl import F_GETPIPE_SZ, fcntl, ioctl
    from termios import FIONREAD

    def capacity_of(fd: int) -> int:
        """The bytes an empty pipe takes; PIPE_BUF for whatever is no pipe."""
        try:
            return max(fcntl(fd, F_GETPIPE_SZ), PIPE_BUF)
        except OSError:
            return PIPE_BUF

    def is_empty(fd: int) -> bool:
        """Whether everything that was written to a pipe was read."""
        try:
            return int.from_bytes(ioctl(fd, FIONREAD, bytes(4)), sys.byteorder) == 0
        except OSError:
            return False

else:

    def capacity_of(fd: int) -> int:  # noqa: ARG001  # not told here
        """What fits wherever there is room."""
        return PIPE_BUF

    def is_empty(fd: int) -> bool:  # noqa: ARG001  # not told here
        """Never known."""
        return False


class Room:
    """The room of one pipe or socket; asking never blocks."""

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self._poll = select.poll()
        self._poll.register(fd, select.POLLOUT)

    def free(self, wanted: int) -> int:
        """How many of so many bytes can be written now; more may fit than it says."""
        if not self._poll.poll(0):
            return 0
        if wanted > PIPE_BUF and is_empty(self._fd):
            return min(wanted, capacity_of(self._fd))
        return min(wanted, PIPE_BUF)
