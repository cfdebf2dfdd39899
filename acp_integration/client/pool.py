"""Clients by their names: each is opened when it is first asked for, and shared by all who ask for it."""

import threading
from collections.abc import Callable

from acp_integration.client.client import AcpClient
from acp_integration.client.sync import SyncAcpClient


class ClientPool:
    """The clients of one process, on loops in threads of their own; used from any thread.

    Args:
        build: makes the client of a name; it may raise.
    """

    def __init__(self, build: Callable[[str], AcpClient]) -> None:
        self._build = build
        self._lock = threading.Lock()
        self._clients: dict[str, SyncAcpClient] = {}

    def opened(self, name: str) -> SyncAcpClient:
        """A client that is connected; one whose agent has gone is replaced by a new one.

        Raises:
            Exception: what `build` raised, or kept the client from connecting.
        """
        with self._lock:
            client = self._clients.get(name)
            if client is None or client.async_client.closed:
                client = self._clients[name] = SyncAcpClient(self._build(name))
        client.initialize()
        return client

    def close(self) -> None:
        """Close every client; the next one asked for is a new one."""
        with self._lock:
            for client in self._clients.values():
                client.close()
            self._clients.clear()
