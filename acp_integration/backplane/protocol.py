"""What the endpoint needs of whatever carries messages from one worker process to another."""

from collections.abc import Callable
from typing import Protocol

from acp_integration.errors import ConnectionClosed

OnMessage = Callable[[str, bytes], None]
"""Takes a message and the worker that sent it, on the loop, in the order sent; it never blocks and never raises."""


class WorkerGone(ConnectionClosed):
    """A message could not be brought to a worker: it has ended, or takes nothing.

    Attributes:
        worker: the worker it was for.
    """

    def __init__(self, worker: str, reason: str) -> None:
        super().__init__(f"Worker {worker} cannot be reached: {reason}")
        self.worker = worker


class Backplane(Protocol):
    """Carries messages between workers.

    What one worker sends another arrives in the order sent, and at most once. A loss makes itself known: `send` raises,
    or `on_message` is given one empty message, which says that some from that worker may be missing.
    """

    async def start(self, worker: str, on_message: OnMessage) -> None:
        """Hand over whatever is sent to this worker, until `aclose`.

        Raises:
            ConfigurationError: if what carries the messages cannot be used.
        """
        ...

    async def send(self, worker: str, message: bytes) -> None:
        """Bring a message to a worker; waits, within a bound, while that one is behind.

        Raises:
            WorkerGone: if it cannot be brought there.
        """
        ...

    async def alive(self, worker: str) -> bool:
        """Whether a worker of this name can be reached."""
        ...

    async def aclose(self) -> None:
        """Take and bring nothing more, and leave nothing behind."""
        ...
