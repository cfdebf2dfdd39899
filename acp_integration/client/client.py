"""The client of one agent."""

from collections.abc import Mapping, Sequence
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import Any

from acp_integration.client.calls import AgentCalls, with_meta
from acp_integration.client.home import Home
from acp_integration.client.negotiation import AgentFeatures
from acp_integration.client.session import ClientSession
from acp_integration.errors import ClientError
from acp_integration.options import ClientOptions
from acp_integration.types import to_wire
from acp_integration.wire import methods
from acp_integration.wire.agent import InitializeResponse, ListProvidersResponse, ListSessionsResponse
from acp_integration.wire.capabilities import AuthMethodAgent, AuthMethodTerminal, Implementation


class AcpClient:
    """Drives one agent over one connection; made by `build_client`.

    It connects at `initialize` or on entering ``async with``, and cannot be opened again once it is closed or the agent
    is gone: build another one. It lives on the event loop that opened it and can be used from any task, loop or thread.

    Every call raises PeerError when the agent answers with an error, AgentTimeout when it does not answer in time, and
    AgentExited or ConnectionClosed when it is gone; every call but `initialize` and the extensions raises ClientError
    before `initialize` was answered.
    """

    def __init__(self, calls: AgentCalls, options: ClientOptions) -> None:
        self.options = options
        self._calls = calls

    def __repr__(self) -> str:
        return f"AcpClient({self._calls.connection.transport!r})"

    async def __aenter__(self) -> "AcpClient":
        try:
            await self.initialize()
        except BaseException:
            await self.aclose()
            raise
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    @property
    def home(self) -> Home:
        """The event loop the client lives on, and the way to it."""
        return self._calls.home

    @property
    def agent(self) -> AgentFeatures | None:
        """What the agent announced; None before `initialize`."""
        return self._calls.features

    @property
    def agent_info(self) -> Implementation | None:
        """The agent's name and version; None before `initialize`, or if it does not say."""
        return None if self._calls.answer is None else self._calls.answer.agent_info

    @property
    def auth_methods(self) -> tuple[AuthMethodAgent | AuthMethodTerminal, ...]:
        """The ways to authenticate that the agent offers."""
        return self._calls.auth_methods

    @property
    def closed(self) -> bool:
        """Whether the connection has ended."""
        return self._calls.connection.lost is not None

    def supports(self, capability: str) -> bool:
        """Whether the agent announced a capability such as ``sessionCapabilities.close``; False before `initialize`."""
        return self.agent is not None and self.agent.supports(capability)

    async def initialize(self) -> InitializeResponse:
        """Connect and agree on the protocol version; called again, the first answer.

        Raises:
            VersionMismatch: if the agent speaks no version that this client speaks; the connection is closed then, as
                it is when the agent does not answer within the initialize timeout.
        """
        return await self._calls.initialize()

    async def authenticate(self, method_id: str) -> None:
        """Authenticate by one of the agent's methods.

        Raises:
            ClientError: for a method that runs in a terminal, or that the agent does not offer; nothing was sent.
        """
        self._calls.initialized()
        offered = {method.id: method for method in self.auth_methods}
        if isinstance(offered.get(method_id), AuthMethodTerminal):
            raise ClientError(
                f"The method {method_id} runs the agent in a terminal: start it there, not by authenticate()"
            )
        if method_id not in offered:
            raise ClientError(f"The agent offers no method {method_id}: use one of {', '.join(offered) or '(none)'}")
        await self._calls.call(methods.AUTHENTICATE, {"methodId": method_id})

    async def logout(self) -> None:
        """End the authentication; CapabilityMissing if the agent cannot."""
        await self._calls.call(methods.LOGOUT, {}, gate="auth.logout")

    async def new_session(
        self,
        cwd: str | Path,
        *,
        mcp_servers: Sequence[Any] = (),
        additional_directories: Sequence[str | Path] = (),
        system_prompt: Any = None,
        meta: Mapping[str, Any] | None = None,
    ) -> ClientSession:
        """Open a session in a directory.

        Args:
            cwd: the directory; a relative one is made absolute here.
            mcp_servers: the MCP servers it may use, as mappings or the SDK's models.
            additional_directories: more directories it may work in.
            system_prompt: text appended to the agent's own prompt, or the mapping that the protocol describes.
            meta: the `_meta` of the request.

        Raises:
            CapabilityMissing: for what the agent does not support; nothing was sent.
            AuthRequired: if the agent wants authentication first.
        """
        params = self._setup(cwd, mcp_servers, additional_directories, meta)
        if system_prompt is not None:
            self._calls.initialized().require("sessionCapabilities.systemPrompt")
            params["systemPrompt"] = _system_prompt(system_prompt)
        answer = await self._calls.call(methods.SESSION_NEW, params)
        return ClientSession(self._calls, answer.session_id, answer.modes, answer.config_options)

    async def load_session(
        self, session_id: str, cwd: str | Path, *, mcp_servers: Sequence[Any] = (), **more: Any
    ) -> ClientSession:
        """Open an earlier session again; the agent sends its whole history as updates first.

        Takes `additional_directories` and `meta` like `new_session`, and raises the same.
        """
        params = self._setup(cwd, mcp_servers, **more)
        return await self._reopen(methods.SESSION_LOAD, "loadSession", session_id, params)

    async def resume_session(
        self, session_id: str, cwd: str | Path, *, mcp_servers: Sequence[Any] = (), **more: Any
    ) -> ClientSession:
        """Open an earlier session again without its history; otherwise like `load_session`."""
        params = self._setup(cwd, mcp_servers, **more)
        return await self._reopen(methods.SESSION_RESUME, "sessionCapabilities.resume", session_id, params)

    async def fork_session(
        self, session_id: str, cwd: str | Path, *, mcp_servers: Sequence[Any] = (), **more: Any
    ) -> ClientSession:
        """Open a copy of a session (unstable in the protocol); otherwise like `load_session`."""
        params = {"sessionId": session_id, **self._setup(cwd, mcp_servers, **more)}
        answer = await self._calls.call(methods.SESSION_FORK, params, session_id, gate="sessionCapabilities.fork")
        return ClientSession(self._calls, answer.session_id, answer.modes, answer.config_options)

    async def list_sessions(self, *, cwd: str | Path | None = None, cursor: str | None = None) -> ListSessionsResponse:
        """One page of the agent's sessions: `sessions`, and `next_cursor` for the next page."""
        params = {} if cwd is None else {"cwd": _absolute(cwd)}
        if cursor is not None:
            params["cursor"] = cursor
        page: ListSessionsResponse = await self._calls.call(
            methods.SESSION_LIST, params, gate="sessionCapabilities.list"
        )
        return page

    async def close_session(self, session_id: str) -> None:
        """Cancel what a session does and free what it holds; CapabilityMissing if the agent cannot."""
        await self.session(session_id).close()

    async def delete_session(self, session_id: str) -> None:
        """Remove a session for good; CapabilityMissing if the agent cannot."""
        await self.session(session_id).delete()

    def session(self, session_id: str) -> ClientSession:
        """A session that is open already, by its id."""
        return ClientSession(self._calls, session_id)

    async def list_providers(self) -> ListProvidersResponse:
        """The agent's providers of models (unstable in the protocol)."""
        answer: ListProvidersResponse = await self._calls.call(methods.PROVIDERS_LIST, {}, gate="providers")
        return answer

    async def set_provider(
        self, provider_id: str, *, api_type: str, base_url: str, headers: Mapping[str, str] | None = None
    ) -> None:
        """Set how a provider of models is reached (unstable in the protocol)."""
        params = {"providerId": provider_id, "apiType": api_type, "baseUrl": base_url, "headers": dict(headers or {})}
        await self._calls.call(methods.PROVIDERS_SET, params, gate="providers")

    async def disable_provider(self, provider_id: str) -> None:
        """Switch a provider of models off (unstable in the protocol)."""
        await self._calls.call(methods.PROVIDERS_DISABLE, {"providerId": provider_id}, gate="providers")

    async def ext_request(
        self, method: str, params: Mapping[str, Any] | None = None, *, session: str | None = None
    ) -> Any:
        """Send an extension request; its result is any JSON value. `session` is the session it belongs to, if any."""
        return await self._calls.extension(method, dict(params or {}), session)

    async def ext_notification(
        self, method: str, params: Mapping[str, Any] | None = None, *, session: str | None = None
    ) -> None:
        """Send an extension notification."""
        await self._calls.notify(method, dict(params or {}), session)

    async def aclose(self) -> None:
        """Handle what has come, for at most the request timeout, then close the connection; safe to call twice."""
        await self._calls.aclose()

    def close_at_once(self) -> None:
        """Close without handling what has come; safe to call from any thread, also while `aclose` waits."""
        if self.home.loop is None:
            self._calls.connection.close_at_once()
        self.home.call_soon(self._calls.connection.close_at_once)

    async def _reopen(self, method: str, gate: str, session_id: str, params: Mapping[str, Any]) -> ClientSession:
        answer = await self._calls.call(method, {"sessionId": session_id, **params}, session_id, gate=gate)
        return ClientSession(self._calls, session_id, answer.modes, answer.config_options)

    def _setup(
        self,
        cwd: str | Path,
        mcp_servers: Sequence[Any],
        additional_directories: Sequence[str | Path] = (),
        meta: Mapping[str, Any] | None = None,
    ) -> dict[str, Any]:
        servers = [to_wire(server) for server in mcp_servers]
        directories = [_absolute(directory) for directory in additional_directories]
        self._calls.initialized().check_setup(servers, directories)
        params: dict[str, Any] = {"cwd": _absolute(cwd), "mcpServers": servers}
        if directories:
            params["additionalDirectories"] = directories
        return with_meta(params, meta)


def _system_prompt(value: Any) -> Any:
    return {"mode": "append", "content": [to_wire(value)]} if isinstance(value, str) else value


def _absolute(path: str | Path) -> str:
    """An absolute path of any system as it is, because the agent may run elsewhere; a relative one is one of ours."""
    absolute = PurePosixPath(path).is_absolute() or PureWindowsPath(path).is_absolute()
    return str(path) if absolute else str(Path(path).absolute())
