"""The same turn for a sync handler: every call blocks its thread and goes through the connection's loop."""

from collections.abc import Callable, Coroutine, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

import anyio.from_thread
from anyio.lowlevel import EventLoopToken, current_token

from acp_integration.caller import HttpRequest
from acp_integration.context.session import AcpSession
from acp_integration.context.turn import PromptContext

T = TypeVar("T")


class SyncPromptContext:
    """One turn as its sync handler sees it; used on the handler's own thread."""

    __slots__ = ("_token", "_turn")

    def __init__(self, turn: PromptContext, token: EventLoopToken | None = None) -> None:
        self._turn = turn
        self._token = token or current_token()

    @property
    def text(self) -> str:
        """The text blocks of the prompt, joined."""
        return self._turn.text

    @property
    def content(self) -> Sequence[Any]:
        """The content blocks of the prompt."""
        return self._turn.content

    @property
    def session(self) -> AcpSession:
        """The session of the turn."""
        return self._turn.session

    @property
    def user(self) -> Any:
        """Who opened the connection, as the application calls it; None on stdio."""
        return self._turn.user

    @property
    def http(self) -> HttpRequest | None:
        """The request that opened the connection; None on stdio."""
        return self._turn.http

    @property
    def is_cancelled(self) -> bool:
        """Whether the turn was cancelled."""
        return self._turn.is_cancelled

    def on_cancel(self, callback: Callable[[], object]) -> None:
        """Call back once, on the connection's loop, when the turn is cancelled; keep it quick."""
        anyio.from_thread.run_sync(self._turn.on_cancel, callback, token=self._token)

    def wait_cancelled(self) -> None:
        """Block until the turn is cancelled."""
        self._turn.call.cancellation.flag.wait()

    def raise_if_cancelled(self) -> None:
        """Raise TurnCancelled if the turn was cancelled."""
        self._turn.raise_if_cancelled()

    def send_message(self, text: str) -> None:
        """Send a piece of the agent's message; dropped after the turn's answer."""
        self._run(self._turn.send_message, text)

    def send_thought(self, text: str) -> None:
        """Send a piece of the agent's reasoning; dropped after the turn's answer."""
        self._run(self._turn.send_thought, text)

    def send_update(self, update: Any) -> None:
        """Send any update given in its wire form; dropped after the turn's answer."""
        self._run(self._turn.send_update, update)

    @contextmanager
    def tool_call(self, title: str, *, kind: str = "other", raw_input: Any = None) -> Iterator[str]:
        """Announce a tool call and settle it: completed, or failed if the block raises."""
        manager = self._turn.tool_call(title, kind=kind, raw_input=raw_input)
        identifier = self._run(manager.__aenter__)
        try:
            yield identifier
        except BaseException as error:
            self._unchecked(manager.__aexit__, type(error), error, error.__traceback__)
            raise
        self._unchecked(manager.__aexit__, None, None, None)

    def request_permission(self, tool_call: Any, options: Sequence[Any]) -> str | None:
        """Ask the client for permission: the id of the chosen option, or None if it was cancelled."""
        return self._run(self._turn.request_permission, tool_call, options)

    def _run(self, function: Callable[..., Coroutine[Any, Any, T]], *arguments: Any) -> T:
        self.raise_if_cancelled()
        return self._unchecked(function, *arguments)

    def _unchecked(self, function: Callable[..., Coroutine[Any, Any, T]], *arguments: Any) -> T:
        return anyio.from_thread.run(function, *arguments, token=self._token)
