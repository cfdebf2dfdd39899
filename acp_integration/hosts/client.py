"""The life of a client that an application holds: made once, opened at its first use, closed once and in time."""

import anyio.to_thread

from acp_integration.client.client import AcpClient
from acp_integration.client.sync import SyncAcpClient
from acp_integration.hosts.completion import Completion, Once
from acp_integration.hosts.stopping import stop_within, stop_within_blocking
from acp_integration.owned import OwnedTask

_WHAT = "The ACP client"


class AcpClientHost:
    """Owns one client; whoever holds the host closes it, and nobody else closes the client.

    Attributes:
        client: the client.
        sync_client: the blocking facade of the same client, over the same connection.
    """

    def __init__(self, client: AcpClient) -> None:
        self.client = client
        self.sync_client = SyncAcpClient(client)
        self._closed = Completion()
        self._once = Once()
        self._closing = OwnedTask("acp-client-close")

    def close_gracefully(self) -> Completion:
        """Handle what has come and close, without waiting; only the first call acts, all return the same object."""
        if self._once.claim():
            home = self.client.home
            if home.loop is None or home.loop.is_closed():
                self._close_at_once()
            else:
                home.call_soon(lambda: self._closing.start(self._close))
        return self._closed

    async def close(self, timeout: float | None = None) -> None:
        """Close gracefully for at most so many seconds, by default the request timeout and ten, then at once."""
        graceful = self.close_gracefully()
        try:
            await stop_within(self._bound(timeout), graceful, self._close_at_once, _WHAT)
        finally:
            with anyio.CancelScope(shield=True):
                await anyio.to_thread.run_sync(self.sync_client.end_thread)

    def close_blocking(self, timeout: float | None = None) -> None:
        """The same for a thread that is not the client's own."""
        graceful = self.close_gracefully()
        try:
            stop_within_blocking(self._bound(timeout), graceful, self._close_at_once, _WHAT)
        finally:
            self.sync_client.end_thread()

    def _bound(self, timeout: float | None) -> float:
        return self.client.options.close_timeout if timeout is None else timeout

    async def _close(self) -> None:
        try:
            await self.client.aclose()
        except BaseException as error:
            self._closed.fail(error)
            raise
        self._closed.complete()

    def _close_at_once(self) -> None:
        self.client.close_at_once()
        if self.client.home.loop is None or self.client.home.loop.is_closed():
            self._closed.complete()
