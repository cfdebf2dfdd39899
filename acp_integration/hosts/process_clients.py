"""The clients of a process whose views run on threads: kept on a loop in a thread of their own."""

import atexit
import os
import threading
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import ExitStack

from anyio.from_thread import BlockingPortal, start_blocking_portal

from acp_integration.client.client import AcpClient
from acp_integration.hosts.clients import SharedClients


class ProcessClients:
    """Opens clients on a loop in a thread of their own, one set for each process, closed at its end.

    Args:
        load: makes the clients when the first is asked for.
    """

    def __init__(self, load: Callable[[], SharedClients]) -> None:
        self._load = load
        # By the id of the process: after a fork, the pipes, threads and locks of the parent are not the child's.
        self._of_process: dict[int, _Running] = {}

    def opened(self, name: str) -> Future[AcpClient]:
        """The client of a name, connected, for any thread; the future says why it cannot be.

        Raises:
            ConfigurationError: if the clients cannot be made as they are configured.
        """
        return self._here().opened(name, self._load)

    def close(self) -> None:
        """Close the clients of this process; when one is asked for again, all are made anew."""
        self._here().close()

    def _here(self) -> "_Running":
        return self._of_process.setdefault(os.getpid(), _Running())


class _Running:
    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._stack = ExitStack()
        self._opened: tuple[SharedClients, BlockingPortal] | None = None

    def opened(self, name: str, load: Callable[[], SharedClients]) -> Future[AcpClient]:
        with self._lock:
            if self._opened is None:
                self._opened = self._start(load())
            shared, portal = self._opened
            return portal.start_task_soon(shared.opened, name)

    def close(self) -> None:
        with self._lock:
            self._opened = None
            self._stack.close()

    def _start(self, shared: SharedClients) -> tuple[SharedClients, BlockingPortal]:
        portal = self._stack.enter_context(start_blocking_portal(name="acp-clients"))
        self._stack.callback(portal.call, shared.aclose)
        atexit.register(self.close)
        return shared, portal
