"""The clients of an application: each is opened when it is first asked for, shared, and closed once."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

import anyio

from acp_integration.client.builder import ClientBuilder, build_client
from acp_integration.client.client import AcpClient
from acp_integration.configuration.files import Files
from acp_integration.configuration.gathering import gather
from acp_integration.errors import ConfigurationError
from acp_integration.extensions import Extensions, extensions_of
from acp_integration.hosts.client import AcpClientHost
from acp_integration.settings.client import AcpClientSettings
from acp_integration.transports.selection import select_client_transport

DEFAULT: Final = "default"
CLOSE_SECONDS: Final = 5.0


class SharedClients:
    """Opens clients by their names, on the loop that asks for them.

    Args:
        settings: the settings of each; that of ``acp.client`` is named ``default``.
        customizers: called with the builder of each, to add handlers.
        plugins: what has more of them, by the name of a client.

    Raises:
        ConfigurationError: if settings name no single transport, or a capability lacks its handler.
    """

    def __init__(
        self,
        settings: Mapping[str, AcpClientSettings],
        customizers: Iterable[Callable[[ClientBuilder], object]] = (),
        plugins: Extensions | None = None,
    ) -> None:
        self._settings = settings
        self._plugins = plugins or extensions_of()
        self._customizers = tuple(customizers)
        self._hosts = {name: self._build(name) for name in settings}

    def __contains__(self, name: str) -> bool:
        return name in self._settings

    async def opened(self, name: str = DEFAULT) -> AcpClient:
        """A client that is connected; one whose agent has gone is replaced by a new one.

        Raises:
            ConfigurationError: if there is none of that name.
            ClientError: if its agent cannot be reached.
        """
        if name not in self._hosts:
            raise ConfigurationError(f"There is no client {name!r}: set {prefix_of(name)}.transport.*")
        host = self._hosts[name]
        if host.client.closed:
            host = self._hosts[name] = self._build(name)
        try:
            await host.client.initialize()
        except Exception:
            await host.close(CLOSE_SECONDS)
            raise
        return host.client

    async def aclose(self) -> None:
        """Close every client, gracefully for a few seconds."""
        with anyio.CancelScope(shield=True):
            async with anyio.create_task_group() as tasks:
                for host in self._hosts.values():
                    tasks.start_soon(host.close, CLOSE_SECONDS)

    def _build(self, name: str) -> AcpClientHost:
        prefix, settings = prefix_of(name), self._settings[name]
        transport = select_client_transport(settings, prefix)
        if transport is None:
            raise ConfigurationError(f"The client {name!r} has no transport: set {prefix}.transport.*")
        customizers = [*self._customizers, *self._plugins.collect("acp_client_customizers", name=name)]
        return AcpClientHost(build_client(transport, settings, customizers, prefix=prefix))


def client_settings(mapping: Mapping[str, Any] | None = None, *, files: Files = ()) -> dict[str, AcpClientSettings]:
    """The settings of every client that has a transport, by its name, from every source.

    Args:
        mapping: the framework's own settings.
        files: files and project directories.

    Raises:
        ConfigurationError: with one line for every bad key.
    """
    default, named = gather(
        lambda: AcpClientSettings.load(mapping, files=files), lambda: AcpClientSettings.load_named(mapping, files=files)
    )
    found: dict[str, AcpClientSettings] = named
    return found | ({DEFAULT: default} if default.has_transport else {})


def prefix_of(name: str) -> str:
    """What stands before the keys of a client."""
    return "acp.client" if name == DEFAULT else f"acp.clients.{name}"
