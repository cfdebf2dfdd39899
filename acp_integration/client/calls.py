"""The requests of one client: checked against what the agent announced, sent at home, answered typed."""

from collections.abc import Mapping, Sequence
from typing import Any

import anyio
import msgspec

from acp_integration import jsonrpc
from acp_integration.client.connection import AgentConnection
from acp_integration.client.home import Home
from acp_integration.client.negotiation import AgentFeatures
from acp_integration.client.prompts import PromptHandle
from acp_integration.errors import AgentTimeout, AuthRequired, ClientError, PeerError, VersionMismatch
from acp_integration.options import ClientOptions
from acp_integration.wire import methods
from acp_integration.wire.agent import InitializeResponse
from acp_integration.wire.capabilities import AuthMethodAgent, AuthMethodTerminal
from acp_integration.wire.decoding import InvalidResult, decode_result


class AgentCalls:
    """What the client and its sessions send through.

    Attributes:
        home: the loop the client lives on.
        connection: the connection to the agent.
        answer: the agent's answer to `initialize`; None before.
    """

    def __init__(self, connection: AgentConnection, options: ClientOptions, announcement: Mapping[str, Any]) -> None:
        self.home = Home()
        self.connection = connection
        connection.explain = self._explained
        self.answer: InitializeResponse | None = None
        self.features: AgentFeatures | None = None
        self._options = options
        self._announcement = announcement
        self._initializing: anyio.Lock | None = None

    @property
    def auth_methods(self) -> tuple[AuthMethodAgent | AuthMethodTerminal, ...]:
        """The ways to authenticate that the agent offers."""
        offered = [] if self.answer is None else self.answer.auth_methods
        return tuple(method for method in offered if isinstance(method, AuthMethodAgent | AuthMethodTerminal))

    async def initialize(self) -> InitializeResponse:
        """Connect and agree on the version, once."""
        return await self.home.run(self._initialize)

    def initialized(self) -> AgentFeatures:
        """What the agent announced.

        Raises:
            ClientError: before `initialize` was answered.
        """
        if self.features is None:
            self.connection.check_open()
            raise ClientError("Call initialize() first: the agent has not answered initialize yet")
        return self.features

    async def call(self, method: str, params: Any, session: str | None = None, *, gate: str | None = None) -> Any:
        """Send one of the protocol's requests; its result as the struct of the method.

        Raises:
            CapabilityMissing: if the agent did not announce the gate; nothing was sent.
        """
        features = self.initialized()
        if gate is not None:
            features.require(gate)
        return await self.home.run(self._call, method, params, session)

    async def extension(self, method: str, params: Mapping[str, Any], session: str | None) -> Any:
        """Send an extension request; its result is any JSON value."""
        await self.home.run(self.connection.open)
        raw = await self.home.run(self._request, method, params, session)
        try:
            return msgspec.json.decode(raw)
        except msgspec.DecodeError as error:
            data = {"reason": "unreadable-result", "method": method}
            raise PeerError(jsonrpc.INTERNAL_ERROR, "The answer cannot be used", data, method=method) from error

    async def notify(self, method: str, params: Mapping[str, Any], session: str | None) -> None:
        """Send a notification."""
        await self.home.run(self.connection.open)
        await self.home.run(self._notify, method, params, session)

    async def cancel_session(self, session_id: str) -> None:
        """Cancel a session's turn."""
        self.initialized()
        await self.home.run(self._cancel_session, session_id)

    async def start_prompt(
        self,
        session_id: str,
        blocks: Sequence[Mapping[str, Any]],
        meta: Mapping[str, Any] | None,
        *,
        stream: bool = False,
    ) -> PromptHandle:
        """Send a prompt; a streamed one makes the agent wait for its reader."""
        self.initialized().check_prompt(blocks)
        params = with_meta({"sessionId": session_id, "prompt": blocks}, meta)
        return await self.home.run(self._start_prompt, session_id, params, stream)

    async def aclose(self) -> None:
        """Handle what has come, then close the connection."""
        await self.home.run(self.connection.aclose)

    async def _initialize(self) -> InitializeResponse:
        if self._initializing is None:
            self._initializing = anyio.Lock()
        async with self._initializing:
            if self.answer is None:
                await self.connection.open()
                self.answer = await self._shake_hands()
                self.features = AgentFeatures(self.answer.agent_capabilities)
        return self.answer

    async def _shake_hands(self) -> InitializeResponse:
        try:
            raw = await self.connection.request(
                methods.INITIALIZE, self._announcement, timeout=self._options.initialize_timeout
            )
            answer: InitializeResponse = read_result(methods.INITIALIZE, raw)
            if answer.protocol_version != methods.PROTOCOL_VERSION:
                raise VersionMismatch(methods.PROTOCOL_VERSION, answer.protocol_version)
        except (AgentTimeout, VersionMismatch):
            with anyio.CancelScope(shield=True):
                await self.connection.aclose()
            raise
        return answer

    async def _call(self, method: str, params: Any, session: str | None) -> Any:
        return read_result(method, await self._request(method, params, session))

    async def _request(self, method: str, params: Any, session: str | None) -> msgspec.Raw:
        return await self.connection.request(method, params, session, timeout=self._options.request_timeout)

    async def _notify(self, method: str, params: Any, session: str | None) -> None:
        self.connection.notify(method, params, session)

    async def _cancel_session(self, session_id: str) -> None:
        self.connection.cancel_session(session_id)

    async def _start_prompt(self, session_id: str, params: Any, stream: bool) -> PromptHandle:
        connection = self.connection
        pending = await connection.send(methods.SESSION_PROMPT, params, session_id, urgent=False)
        handle = PromptHandle(self.home, connection, pending, connection.count_unread if stream else None)
        connection.prompts.add(handle)
        connection.spawn(connection.prompts.follow, handle, self._options.prompt_timeout)
        return handle

    def _explained(self, error: PeerError) -> PeerError:
        if error.code != jsonrpc.AUTH_REQUIRED:
            return error
        offered = [offer.id for offer in self.auth_methods]
        return AuthRequired(error.message, error.data, method=error.method, auth_methods=offered)


def read_result(method: str, raw: msgspec.Raw) -> Any:
    """The result of a request as the struct of its method.

    Raises:
        PeerError: with the code -32603 and data that names the field, if the answer cannot be used.
    """
    try:
        return decode_result(method, raw)
    except InvalidResult as error:
        missing = bytes(raw) == b"null"
        data = {"reason": "missing-result" if missing else "unreadable-result", "method": method, "field": error.path}
        if "missing" in error.problem and not missing:
            data["reason"] = "missing-required-field"
        raise PeerError(jsonrpc.INTERNAL_ERROR, f"The answer cannot be used: {error}", data, method=method) from None


def with_meta(params: dict[str, Any], meta: Mapping[str, Any] | None) -> dict[str, Any]:
    """Params with the `_meta` a caller wants to send, if any."""
    return params if meta is None else {**params, "_meta": dict(meta)}
