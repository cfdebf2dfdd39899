"""The client at the other end: what it announced that it can do, and requests that any handler may send it."""

from collections.abc import Mapping
from typing import Any

import msgspec

from acp_integration.context import elicitation
from acp_integration.context.capabilities import require, supports
from acp_integration.context.elicitation import Elicitation
from acp_integration.errors import CapabilityMissing, HandlerError
from acp_integration.jsonrpc import encode
from acp_integration.requests import ask
from acp_integration.turns import Call
from acp_integration.wire.mcp import McpServerAcp


class ConnectedClient:
    """The client, as one handler call sees it: with the capabilities it had when the call began."""

    __slots__ = ("_call",)

    def __init__(self, call: Call) -> None:
        self._call = call

    @property
    def name(self) -> str | None:
        """The client's name, if it said."""
        info = self._call.peer.info
        return None if info is None else info.name

    @property
    def version(self) -> str | None:
        """The client's version, if it said."""
        info = self._call.peer.info
        return None if info is None else info.version

    @property
    def capabilities(self) -> Any:
        """All that the client announced, as light structs with snake_case names; None before `initialize`."""
        return self._call.capabilities

    @property
    def authenticated(self) -> bool:
        """Whether an `authenticate` succeeded before the call began, and no `logout` came since."""
        return self._call.authenticated

    def supports(self, capability: str) -> bool:
        """Whether the client announced a capability, named as on the wire, for example ``fs.readTextFile``."""
        return supports(self._call.capabilities, capability)

    def require(self, capability: str) -> None:
        """Do nothing if the client announced a capability.

        Raises:
            CapabilityMissing: if it did not.
        """
        require(self._call.capabilities, capability)

    @property
    def supports_read_text_file(self) -> bool:
        """Whether the client reads files."""
        return self.supports("fs.readTextFile")

    @property
    def supports_write_text_file(self) -> bool:
        """Whether the client writes files."""
        return self.supports("fs.writeTextFile")

    @property
    def supports_terminal(self) -> bool:
        """Whether the client runs commands."""
        return self.supports("terminal")

    @property
    def supports_elicit_form(self) -> bool:
        """Whether the client shows forms."""
        return self.supports("elicitation.form")

    @property
    def supports_elicit_url(self) -> bool:
        """Whether the client opens pages."""
        return self.supports("elicitation.url")

    @property
    def supports_boolean_options(self) -> bool:
        """Whether the client shows config options that are on or off."""
        return self.supports("session.configOptions.boolean")

    @property
    def supports_notices(self) -> bool:
        """Whether the client takes `notice` updates."""
        return self.supports("session.notices")

    @property
    def supports_compaction(self) -> bool:
        """Whether the client takes `compaction_*` updates."""
        return self.supports("session.compaction")

    @property
    def supports_terminal_auth(self) -> bool:
        """Whether the client runs an authentication in a terminal."""
        return self.supports("auth.terminal")

    def require_read_text_file(self) -> None:
        """Raise CapabilityMissing unless the client reads files."""
        self.require("fs.readTextFile")

    def require_write_text_file(self) -> None:
        """Raise CapabilityMissing unless the client writes files."""
        self.require("fs.writeTextFile")

    def require_terminal(self) -> None:
        """Raise CapabilityMissing unless the client runs commands."""
        self.require("terminal")

    def require_elicit_form(self) -> None:
        """Raise CapabilityMissing unless the client shows forms."""
        self.require("elicitation.form")

    def require_elicit_url(self) -> None:
        """Raise CapabilityMissing unless the client opens pages."""
        self.require("elicitation.url")

    async def elicit_form(self, message: str, schema: Any) -> Elicitation:
        """Show the person a form, in any handler; `schema` is a JSON Schema of one flat object, or its properties.

        Raises:
            CapabilityMissing: if the client shows no forms; nothing was sent.
        """
        return await elicitation.elicit_form(self._call, message, schema)

    async def elicit_url(self, message: str, url: str, *, elicitation_id: str | None = None) -> Elicitation:
        """Ask the person to open a page, in any handler.

        Raises:
            CapabilityMissing: if the client opens no pages; nothing was sent.
        """
        return await elicitation.elicit_url(self._call, message, url, elicitation_id)

    async def complete_elicitation(self, elicitation_id: str) -> None:
        """Tell the client that what was to be done on a page is done.

        Raises:
            CapabilityMissing: if the client opens no pages; nothing was sent.
        """
        elicitation.complete(self._call, elicitation_id)

    async def ext_request(self, method: str, params: Mapping[str, Any] | None = None) -> Any:
        """Send an extension request, whose name begins with an underscore; returns its result, any JSON value.

        Raises:
            HandlerError: if the name does not begin with an underscore.
            TurnCancelled: if the call was cancelled.
            PeerError: if the client answered with an error.
            TurnError: if it did not answer in time.
        """
        if not method.startswith("_"):
            raise HandlerError(f"The name of an extension method begins with an underscore, and {method!r} does not")
        return await self._request(method, params)

    async def mcp(self, method: str, params: Mapping[str, Any]) -> Any:
        """Send an `mcp/*` request for a server that lives in the client (unstable); returns its result.

        Raises:
            CapabilityMissing: if the session has no MCP server of type `acp`; nothing was sent.
            HandlerError: if the method is not one of `mcp/*`.
            TurnCancelled: if the call was cancelled.
            PeerError: if the client answered with an error.
            TurnError: if it did not answer in time.
        """
        if not method.startswith("mcp/"):
            raise HandlerError(f"An MCP method is one of mcp/*, not {method!r}")
        record = self._call.peer.sessions.find(self._call.session_id)
        if record is None or not any(isinstance(server, McpServerAcp) for server in record.mcp_servers):
            raise CapabilityMissing("mcpServers of type acp")
        return await self._request(method, params)

    async def _request(self, method: str, params: Mapping[str, Any] | None) -> Any:
        timeout = self._call.peer.options.request_timeout
        return msgspec.json.decode(await ask(self._call, method, encode(params or {}), timeout=timeout))
