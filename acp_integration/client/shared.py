"""The clients of an application: each is opened when it is first asked for, shared, and closed once."""

from collections.abc import Callable, Iterable, Mapping
from typing import Final

import anyio

from acp_integration.client.builder import ClientBuilder, build_client
from acp_integration.client.client import AcpClient
from acp_integration.errors import ConfigurationError
from acp_integration.settings.client import AcpClientSettings
from acp_integration.transports.selection import select_client_transport

DEFAULT: Final = "default"
CLOSE_SECONDS: Final = 5.0


class SharedClients:
    """Opens clients by their names, on the loop that asks for them.

    Args:
        settings: the settings of each; that of ``acp.client`` is named ``default``.
        customizers: called with the builder of each, to add handlers.

    Raises:
        ConfigurationError: if settings name no single transport, or a capability lacks its handler.
    """

    def __init__(
        self,
        settings: Mapping[str, AcpClientSettings],
        customizers: Iterable[Callable[[ClientBuilder], object]] = (),
    ) -> None:
        self._settings = settings
        self._customizers = tuple(customizers)
        self._built = {name: self._build(name) for name in settings}

    def __contains__(self, name: str) -> bool:
        return name in self._settings

    async def opened(self, name: str = DEFAULT) -> AcpClient:
        """A client that is connected; one whose agent has gone is replaced by a new one.

        Raises:
            ClientError: if its agent cannot be reached.
        """
        client = self._built[name]
        if client.closed:
            client = self._built[name] = self._build(name)
        try:
            await client.initialize()
        except Exception:
            await client.aclose()
            raise
        return client

    async def aclose(self) -> None:
        """Close every client, gracefully for a few seconds."""
        async with anyio.create_task_group() as tasks:
            for client in self._built.values():
                tasks.start_soon(_close, client)

    def _build(self, name: str) -> AcpClient:
        prefix, settings = prefix_of(name), self._settings[name]
        transport = select_client_transport(settings, prefix)
        if transport is None:
            raise ConfigurationError(f"The client {name!r} has no transport: set {prefix}.transport.*")
        return build_client(transport, settings, self._customizers, prefix=prefix)


def prefix_of(name: str) -> str:
    """What stands before the keys of a client."""
    return "acp.client" if name == DEFAULT else f"acp.clients.{name}"


async def _close(client: AcpClient) -> None:
    with anyio.move_on_after(CLOSE_SECONDS, shield=True) as patience:
        await client.aclose()
    if patience.cancelled_caught:
        client.close_at_once()
