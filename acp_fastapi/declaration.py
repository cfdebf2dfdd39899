"""What an application declared to serve and to drive, and what its settings say about it."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from acp_integration.client.builder import ClientBuilder
from acp_integration.configuration import project_directory
from acp_integration.discovery import AgentCandidate, Target, candidate_of, discovered, require_single
from acp_integration.hosts.clients import DEFAULT, client_settings
from acp_integration.settings.agent import AcpAgentSettings
from acp_integration.settings.client import AcpClientSettings

Clients = AcpClientSettings | Mapping[str, AcpClientSettings]


@dataclass(frozen=True)
class Declaration:
    """The arguments of one `AcpFastAPI`, completed from the environment and from files when they are first needed."""

    agent: Any
    discover: Sequence[Target]
    given_settings: AcpAgentSettings | None
    given_clients: Clients | None
    customizers: Sequence[Callable[[ClientBuilder], object]]
    plugins: Sequence[Any]
    module: str

    @property
    def settings(self) -> AcpAgentSettings:
        """The agent's settings.

        Raises:
            ConfigurationError: with one line for every bad key.
        """
        return self._loaded[0]

    @property
    def origins(self) -> Mapping[str, str]:
        """Where each setting was set."""
        return self._loaded[1]

    @cached_property
    def clients(self) -> Mapping[str, AcpClientSettings]:
        """The settings of every client by its name, that of `acp.client` being `default`."""
        if isinstance(self.given_clients, AcpClientSettings):
            return {DEFAULT: self.given_clients}
        if self.given_clients is not None:
            return self.given_clients
        return client_settings(files=self._files)

    @cached_property
    def candidate(self) -> AgentCandidate | None:
        """The one agent that is served; None for none, and when `acp.agent.enabled` is false.

        Raises:
            DiscoveryError: if it is no agent, or there is more than one.
        """
        if self.settings.enabled is False:
            return None
        if self.agent is not None:
            return candidate_of(self.agent)
        return require_single(discovered(*self.discover), "acp.agent.enabled")

    @cached_property
    def _loaded(self) -> tuple[AcpAgentSettings, Mapping[str, str]]:
        if self.given_settings is not None:
            return self.given_settings, {}
        loaded = AcpAgentSettings.load_with_origins(files=self._files)
        return loaded.settings, loaded.origins

    @cached_property
    def _files(self) -> Sequence[Path]:
        project = project_directory(self.module)
        return [] if project is None else [project]
