"""The life of whatever serves or drives an agent: one contract, so that a framework needs to know only this."""

from typing import Protocol

from acp_integration.hosts.completion import Completion


class AcpHost(Protocol):
    """Starts something, stops it in time, and says when it has ended.

    ``await`` the asynchronous calls on the loop that owns the host. `stop_gracefully` may be called from everywhere,
    a signal handler too; `stop_blocking` from another thread and from ``atexit``.
    """

    async def start(self) -> None:
        """Start, and return once it has started; does nothing when called again or after a stop."""
        ...

    def stop_gracefully(self) -> Completion:
        """Ask it to stop, without waiting; only the first call acts, every call returns the same object.

        Returns:
            what ends when it has stopped, and fails if stopping failed.
        """
        ...

    async def stop(self, timeout: float) -> None:
        """Stop gracefully for at most so many seconds, then at once; at once also when the caller is cancelled."""
        ...

    def stop_blocking(self, timeout: float) -> None:
        """The same for a thread; on the loop's own thread it waits for nothing, and the loop keeps the bound."""
        ...

    def termination(self) -> Completion:
        """What ends when the host has ended, by itself or by a stop; a failed transport is an end like any other."""
        ...

    def port(self) -> int | None:
        """The port that is bound; None before the start and for what has none."""
        ...

    def hold_until_termination(self) -> None:
        """Keep the process alive until the end with one thread of its own; returns at once."""
        ...
