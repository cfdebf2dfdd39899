"""What an agent announced, and the checks of calls that need it: what the agent cannot do is never sent."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from acp_integration.errors import CapabilityMissing
from acp_integration.wire.agent import InitializeResponse
from acp_integration.wire.capabilities import AgentCapabilities

_CONTENT: Final = {
    "image": "promptCapabilities.image",
    "audio": "promptCapabilities.audio",
    "resource": "promptCapabilities.embeddedContext",
}
_MCP: Final = {"http": "mcpCapabilities.http", "sse": "mcpCapabilities.sse", "acp": "mcpCapabilities.acp"}


class AgentFeatures:
    """What the agent of an initialized connection supports, asked by the protocol's own name of a capability."""

    def __init__(self, capabilities: AgentCapabilities) -> None:
        self.announced = capabilities

    @property
    def names(self) -> frozenset[str]:
        """The protocol's names of everything the agent supports, for example ``sessionCapabilities.close``."""
        return frozenset(name for name, supported in self._all() if supported)

    def supports(self, capability: str) -> bool:
        """Whether the agent announced a capability, for example ``loadSession``."""
        return capability in self.names

    def require(self, capability: str) -> None:
        """Raise CapabilityMissing if the agent did not announce the capability."""
        if not self.supports(capability):
            raise CapabilityMissing(capability, side="agent")

    def check_prompt(self, blocks: Sequence[Mapping[str, Any]]) -> None:
        """Raise CapabilityMissing for a content block of a kind that the agent does not take."""
        self._check_types(blocks, _CONTENT)

    def check_setup(self, mcp_servers: Sequence[Mapping[str, Any]], additional_directories: Sequence[str]) -> None:
        """Raise CapabilityMissing for MCP servers or directories that the agent cannot use."""
        self._check_types(mcp_servers, _MCP)
        if additional_directories:
            self.require("sessionCapabilities.additionalDirectories")

    def _check_types(self, values: Sequence[Mapping[str, Any]], gates: Mapping[str, str]) -> None:
        for value in values:
            if gate := gates.get(str(value.get("type"))):
                self.require(gate)

    def _all(self) -> Iterable[tuple[str, bool]]:
        announced = self.announced
        prompt, mcp, session = (
            announced.prompt_capabilities,
            announced.mcp_capabilities,
            announced.session_capabilities,
        )
        return (
            ("loadSession", announced.load_session),
            ("promptCapabilities.image", prompt.image),
            ("promptCapabilities.audio", prompt.audio),
            ("promptCapabilities.embeddedContext", prompt.embedded_context),
            ("mcpCapabilities.http", mcp.http),
            ("mcpCapabilities.sse", mcp.sse),
            ("mcpCapabilities.acp", mcp.acp),
            ("sessionCapabilities.list", session.list is not None),
            ("sessionCapabilities.delete", session.delete is not None),
            ("sessionCapabilities.additionalDirectories", session.additional_directories is not None),
            ("sessionCapabilities.resume", session.resume is not None),
            ("sessionCapabilities.close", session.close is not None),
            ("sessionCapabilities.fork", session.fork is not None),
            ("sessionCapabilities.systemPrompt", session.system_prompt is not None),
            ("auth.logout", announced.auth.logout is not None),
            ("providers", announced.providers is not None),
        )


def features_of(answer: InitializeResponse) -> AgentFeatures:
    """What an agent announced in its answer to `initialize`."""
    return AgentFeatures(answer.agent_capabilities)
