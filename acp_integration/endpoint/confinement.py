"""What a client on the network may not make the agent do: run commands, open files outside the roots."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import msgspec

from acp_integration import jsonrpc
from acp_integration.endpoint.routing import Inbound
from acp_integration.options import EndpointOptions
from acp_integration.wire import methods

ALLOW_STDIO_MCP_SERVERS: Final = "acp.agent.transport.http.allow-stdio-mcp-servers"
ROOTS: Final = "acp.agent.transport.http.roots"

_CONFINED: Final = frozenset({methods.SESSION_NEW, methods.SESSION_LOAD, methods.SESSION_RESUME, methods.SESSION_FORK})


class _Setup(msgspec.Struct):
    cwd: Any = None
    mcpServers: Any = None  # noqa: N815  # as on the wire
    additionalDirectories: Any = None  # noqa: N815  # as on the wire


_setups: Final = msgspec.json.Decoder(_Setup)


class Confinement:
    """Checks the requests that set a session up."""

    def __init__(self, options: EndpointOptions) -> None:
        self._allow_commands = options.allow_stdio_mcp_servers
        self._roots = None if options.roots is None else [Path(root).resolve() for root in options.roots]

    def refusal(self, inbound: Inbound) -> bytes | None:
        """The error that answers a request for something forbidden, None for every other message."""
        if inbound.method not in _CONFINED or not isinstance(inbound.message, jsonrpc.Request):
            return None
        try:
            setup = _setups.decode(inbound.message.params)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return None  # the agent says what is wrong with params that are no object
        for path, reason in (*self._commands(setup), *self._directories(setup)):
            data = {"path": path, "reason": reason}
            return jsonrpc.error_frame(
                inbound.message.id, jsonrpc.INVALID_PARAMS, f"Invalid params: {path}: {reason}", data
            )
        return None

    def _commands(self, setup: _Setup) -> Iterator[tuple[str, str]]:
        if self._allow_commands or not isinstance(setup.mcpServers, list):
            return
        for index, server in enumerate(setup.mcpServers):
            if _runs_command(server):
                reason = f"stdio MCP servers are not allowed from the network ({ALLOW_STDIO_MCP_SERVERS})"
                yield f"mcpServers[{index}]", reason

    def _directories(self, setup: _Setup) -> Iterator[tuple[str, str]]:
        if self._roots is None:
            return
        for path, directory in _named_directories(setup):
            if isinstance(directory, str) and not self._is_inside(directory):
                yield path, f"outside the directories that are allowed ({ROOTS})"

    def _is_inside(self, directory: str) -> bool:
        try:
            resolved = Path(directory).resolve()
        except (ValueError, OSError, RuntimeError):
            return False
        return any(resolved.is_relative_to(root) for root in self._roots or ())


def _runs_command(server: object) -> bool:
    return isinstance(server, dict) and ("command" in server or server.get("type", "stdio") == "stdio")


def _named_directories(setup: _Setup) -> Iterator[tuple[str, object]]:
    yield "cwd", setup.cwd
    if isinstance(setup.additionalDirectories, list):
        for index, directory in enumerate(setup.additionalDirectories):
            yield f"additionalDirectories[{index}]", directory
