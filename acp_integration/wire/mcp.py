"""MCP servers a client asks an agent to use, and MCP messages carried inside the protocol."""

from collections.abc import Mapping
from typing import Any

import msgspec

from acp_integration.wire.structure import Choice, Conflict, NullMeansEmpty, WireStruct, always_written


class HttpHeader(WireStruct):
    """One HTTP header."""

    name: str
    value: str


class EnvVariable(WireStruct):
    """One environment variable."""

    name: str
    value: str


class McpServer(Choice):
    """A server in one of the four ways to reach one; without a `type` it is a program to start."""

    __slots__ = ()

    @classmethod
    def choose(cls, value: Mapping[str, Any]) -> type[Choice] | None:
        """The class named by `type`."""
        kind = value.get("type")
        if kind is None:
            return McpServerStdio
        return _SERVERS.get(kind) if isinstance(kind, str) else None


class McpServerStdio(WireStruct, McpServer):
    """A program to start, spoken to on its standard input and output."""

    name: str
    command: str
    args: NullMeansEmpty[list[str]] = msgspec.field(default_factory=always_written)
    env: NullMeansEmpty[list[EnvVariable]] = msgspec.field(default_factory=always_written)


class McpServerHttp(WireStruct, McpServer, tag_field="type", tag="http"):
    """A server reached by Streamable HTTP."""

    name: str
    url: str
    headers: NullMeansEmpty[list[HttpHeader]] = msgspec.field(default_factory=always_written)


class McpServerSse(WireStruct, McpServer, tag_field="type", tag="sse"):
    """A server reached by HTTP with server-sent events."""

    name: str
    url: str
    headers: NullMeansEmpty[list[HttpHeader]] = msgspec.field(default_factory=always_written)


class McpServerAcp(WireStruct, McpServer, tag_field="type", tag="acp"):
    """A server inside the peer, reached by `mcp/message` (unstable)."""

    name: str
    server_id: str


_SERVERS: dict[str, type[McpServer]] = {
    "stdio": McpServerStdio,
    "http": McpServerHttp,
    "sse": McpServerSse,
    "acp": McpServerAcp,
}


class ConnectMcpRequest(WireStruct):
    """Opens a connection to a server inside the peer (unstable, older shape)."""

    server_id: str


class ConnectMcpResponse(WireStruct):
    """The connection that was opened (unstable, older shape)."""

    connection_id: str


class MessageMcpRequest(WireStruct):
    """One MCP message: on a `connection_id` in the older shape, to a `server_id` in the newer one (unstable)."""

    method: str
    connection_id: str | None = None
    server_id: str | None = None
    request_id: str | None = None
    params: dict[str, Any] | None = None

    def __post_init__(self) -> None:
        if self.connection_id is None and self.server_id is None:
            raise Conflict("serverId", "is missing")
        if self.connection_id is None and self.request_id is None:
            raise Conflict("requestId", "is missing")


class DisconnectMcpRequest(WireStruct):
    """Closes a connection to a server inside the peer (unstable, older shape)."""

    connection_id: str


class DisconnectMcpResponse(WireStruct):
    """The connection is closed (unstable, older shape)."""
