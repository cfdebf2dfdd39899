"""One call of a handler, as interceptors, argument resolvers and return-value handlers see it."""

from collections.abc import Mapping
from typing import Any, Final

from acp_integration import sdk
from acp_integration.caller import HttpRequest
from acp_integration.context.client import ConnectedClient
from acp_integration.context.session import AcpSession
from acp_integration.context.turn import PromptContext
from acp_integration.sessions import SessionRecord
from acp_integration.turns import Call

_NOTHING_GIVEN: Final[Mapping[str, Any]] = {}


class Invocation:
    """One call of a handler.

    Attributes:
        call: the call itself, with its cancel signal.
        handler: the handler's qualified name, or that of the answer given without one.
        attributes: whatever interceptors and resolvers want to hand on to each other.
        given: the arguments that a framework's scope supplies.
    """

    __slots__ = ("_client", "_turn", "attributes", "call", "given", "handler")

    def __init__(self, call: Call, handler: str) -> None:
        self.call = call
        self.handler = handler
        self.attributes: dict[str, Any] = {}
        self.given: Mapping[str, Any] = _NOTHING_GIVEN
        self._client: ConnectedClient | None = None
        self._turn: PromptContext | None = None

    @property
    def method(self) -> str:
        """The protocol method."""
        return self.call.method

    @property
    def params(self) -> Any:
        """The params: a light struct with snake_case names, or raw JSON for an extension."""
        return self.call.params

    @property
    def request(self) -> Any:
        """The params as the official SDK's model; the first use may import the SDK."""
        return sdk.request_model(self.call.method, self.call.params)

    @property
    def session_id(self) -> str | None:
        """The session named by the params, if any."""
        return self.call.session_id

    @property
    def user(self) -> Any:
        """Who opened the connection, as the application calls it; None on stdio."""
        return self.call.peer.caller.user

    @property
    def http(self) -> HttpRequest | None:
        """The request that opened the connection; None on stdio."""
        return self.call.peer.caller.http

    @property
    def client(self) -> ConnectedClient:
        """The client at the other end."""
        if self._client is None:
            self._client = ConnectedClient(self.call)
        return self._client

    @property
    def session(self) -> AcpSession:
        """The session named by the params, or the one that is being created.

        Raises:
            RequestError: -32002 if it is not open on this connection.
        """
        return AcpSession(self._record(), self.call.peer)

    @property
    def turn(self) -> PromptContext | None:
        """The turn, if this is a prompt."""
        if self._turn is None and self.call.is_turn:
            self._turn = PromptContext(self.call, self._record())
        return self._turn

    def _record(self) -> SessionRecord:
        return self.call.record or self.call.peer.sessions.get(self.call.session_id or "")
