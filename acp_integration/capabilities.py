"""What an agent advertises: exactly what it has handlers for."""

from importlib import metadata
from typing import Any

from acp_integration.binding import BoundAgent, BoundHandler
from acp_integration.jsonrpc import encode
from acp_integration.turns import Call
from acp_integration.wire import methods


class Initialize(BoundHandler):
    """Answers `initialize` with what the agent's handlers amount to."""

    def __init__(self, agent: BoundAgent) -> None:
        super().__init__(methods.INITIALIZE)
        self._answer = encode(_answer(agent))

    async def __call__(self, call: Call) -> bytes:
        """Remember what the client can do, and say what the agent can."""
        call.peer.capabilities = call.params.client_capabilities
        call.peer.info = call.params.client_info
        return self._answer


def _answer(agent: BoundAgent) -> dict[str, Any]:
    declaration, prompt = agent.declaration, agent.prompt_mark
    info = {"name": declaration.name, "version": declaration.version or _package_version()}
    return {
        "protocolVersion": methods.PROTOCOL_VERSION,
        "agentCapabilities": {
            "loadSession": methods.SESSION_LOAD in agent.handlers,
            "mcpCapabilities": {"http": declaration.mcp_http, "sse": declaration.mcp_sse},
            "promptCapabilities": {
                "image": prompt.image,
                "audio": prompt.audio,
                "embeddedContext": prompt.embedded_context,
            },
        },
        "agentInfo": info if declaration.title is None else {**info, "title": declaration.title},
    }


def _package_version() -> str:
    return metadata.version("acp-integration")
