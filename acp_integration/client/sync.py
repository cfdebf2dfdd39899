"""The client for code without an event loop: a facade over the same client and the same connection."""

import asyncio
import contextlib
import threading
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, ParamSpec, TypeVar

from anyio.from_thread import BlockingPortal, start_blocking_portal

from acp_integration.client.client import AcpClient
from acp_integration.client.negotiation import AgentFeatures
from acp_integration.client.prompts import PromptHandle, PromptResult
from acp_integration.client.session import ClientSession, Prompt
from acp_integration.types import Update
from acp_integration.wire.agent import InitializeResponse, ListSessionsResponse
from acp_integration.wire.session import SessionConfigOption

T = TypeVar("T")
P = ParamSpec("P")

CLOSE_SECONDS: Final = 10.0
"""How long a blocking close waits for handlers before it closes at once."""


class SyncAcpClient:
    """Blocking calls to an `AcpClient`.

    A client that is open already is used on its own loop, from any other thread. One that is not is opened on a loop in
    a thread of this facade, which ends at `close`.
    """

    def __init__(self, client: AcpClient) -> None:
        self.async_client = client
        self._lock = threading.Lock()
        self._thread = contextlib.ExitStack()
        self._portal: BlockingPortal | None = None

    def __enter__(self) -> "SyncAcpClient":
        try:
            self.initialize()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def agent(self) -> AgentFeatures | None:
        """What the agent announced; None before `initialize`."""
        return self.async_client.agent

    def initialize(self) -> InitializeResponse:
        """Connect and agree on the protocol version; called again, the first answer."""
        return self.run(self.async_client.initialize)

    def authenticate(self, method_id: str) -> None:
        """Authenticate by one of the agent's methods."""
        self.run(self.async_client.authenticate, method_id)

    def logout(self) -> None:
        """End the authentication."""
        self.run(self.async_client.logout)

    def new_session(self, cwd: str | Path, **more: Any) -> "SyncSession":
        """Open a session in a directory; takes what `AcpClient.new_session` takes."""
        return SyncSession(self, self.run(self.async_client.new_session, cwd, **more))

    def load_session(self, session_id: str, cwd: str | Path, **more: Any) -> "SyncSession":
        """Open an earlier session again, with its history."""
        return SyncSession(self, self.run(self.async_client.load_session, session_id, cwd, **more))

    def resume_session(self, session_id: str, cwd: str | Path, **more: Any) -> "SyncSession":
        """Open an earlier session again, without its history."""
        return SyncSession(self, self.run(self.async_client.resume_session, session_id, cwd, **more))

    def fork_session(self, session_id: str, cwd: str | Path, **more: Any) -> "SyncSession":
        """Open a copy of a session (unstable in the protocol)."""
        return SyncSession(self, self.run(self.async_client.fork_session, session_id, cwd, **more))

    def list_sessions(self, *, cwd: str | Path | None = None, cursor: str | None = None) -> ListSessionsResponse:
        """One page of the agent's sessions."""
        return self.run(self.async_client.list_sessions, cwd=cwd, cursor=cursor)

    def close_session(self, session_id: str) -> None:
        """Cancel what a session does and free what it holds."""
        self.run(self.async_client.close_session, session_id)

    def delete_session(self, session_id: str) -> None:
        """Remove a session for good."""
        self.run(self.async_client.delete_session, session_id)

    def session(self, session_id: str) -> "SyncSession":
        """A session that is open already, by its id."""
        return SyncSession(self, self.async_client.session(session_id))

    def ext_request(self, method: str, params: Mapping[str, Any] | None = None, *, session: str | None = None) -> Any:
        """Send an extension request; its result is any JSON value."""
        return self.run(self.async_client.ext_request, method, params, session=session)

    def ext_notification(
        self, method: str, params: Mapping[str, Any] | None = None, *, session: str | None = None
    ) -> None:
        """Send an extension notification."""
        self.run(self.async_client.ext_notification, method, params, session=session)

    def run(self, function: Callable[P, Awaitable[T]], *args: P.args, **kwargs: P.kwargs) -> T:
        """Call any coroutine function on the client's loop, and block until it has ended."""
        self._find_home()
        return self.async_client.home.run_blocking(function, *args, **kwargs)

    def close(self) -> None:
        """Handle what has come, for at most ten seconds, then close the connection; safe to call twice."""
        self._find_home()
        home = self.async_client.home
        if home.loop is None or home.loop.is_closed():
            return
        expiry = threading.Timer(CLOSE_SECONDS, self.async_client.close_at_once)
        expiry.start()
        try:
            home.run_blocking(self.async_client.aclose)
        finally:
            expiry.cancel()
            self.end_thread()

    def end_thread(self) -> None:
        """End the thread of this facade, if it has one; the client must be closed."""
        with self._lock:
            self._thread.close()

    def _find_home(self) -> None:
        """Start a loop for the client unless it has one."""
        home = self.async_client.home
        with self._lock:
            if home.loop is None:
                self._portal = self._thread.enter_context(start_blocking_portal(name="acp-client"))
                home.loop = self._portal.call(_running_loop)


class SyncSession:
    """Blocking calls to a `ClientSession`."""

    def __init__(self, client: SyncAcpClient, session: ClientSession) -> None:
        self.async_session = session
        self._client = client

    @property
    def id(self) -> str:
        """The agent's name for the session."""
        return self.async_session.id

    def prompt(self, prompt: Prompt, *, meta: Mapping[str, Any] | None = None) -> PromptResult:
        """Send a prompt and wait for the end of its turn."""
        return self._client.run(self.async_session.prompt, prompt, meta=meta)

    def stream(self, prompt: Prompt, *, meta: Mapping[str, Any] | None = None) -> Iterator[Update | PromptResult]:
        """The updates of a prompt as they come, and last its result; left early, the turn is cancelled."""
        stream = self.async_session.stream(prompt, meta=meta)
        try:
            with contextlib.suppress(StopAsyncIteration):
                while True:
                    yield self._client.run(stream.__anext__)
        finally:
            self._client.run(stream.aclose)

    def start(self, prompt: Prompt, *, meta: Mapping[str, Any] | None = None) -> "SyncPromptHandle":
        """Send a prompt and return at once."""
        return SyncPromptHandle(self._client, self._client.run(self.async_session.start, prompt, meta=meta))

    def cancel(self) -> None:
        """Cancel the session's turn, harmless when it is idle."""
        self._client.run(self.async_session.cancel)

    def set_mode(self, mode_id: str) -> None:
        """Switch to one of the agent's modes."""
        self._client.run(self.async_session.set_mode, mode_id)

    def set_config_option(self, config_id: str, value: str | bool) -> Sequence[SessionConfigOption]:
        """Set an option; returns the complete list of options after it."""
        return self._client.run(self.async_session.set_config_option, config_id, value)

    def close(self) -> None:
        """Cancel what the session does and free what it holds."""
        self._client.run(self.async_session.close)

    def delete(self) -> None:
        """Remove the session for good."""
        self._client.run(self.async_session.delete)


class SyncPromptHandle:
    """A prompt that is under way, for blocking code."""

    def __init__(self, client: SyncAcpClient, handle: PromptHandle) -> None:
        self.async_handle = handle
        self._client = client

    @property
    def updates(self) -> tuple[Update, ...]:
        """The updates recorded so far."""
        return self.async_handle.updates

    @property
    def done(self) -> bool:
        """Whether the turn has ended."""
        return self.async_handle.done

    def result(self) -> PromptResult:
        """Wait for the end of the turn."""
        return self._client.run(self.async_handle.result)

    def cancel(self) -> None:
        """Ask the agent to stop this turn, and no other."""
        self._client.run(self.async_handle.cancel)


async def _running_loop() -> Any:
    return asyncio.get_running_loop()
