"""One `session/prompt` from sending to answer: the updates it brings, its result, and how to stop it."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, Protocol

import anyio
import msgspec

from acp_integration.client.home import Home
from acp_integration.connection import Pending
from acp_integration.errors import AcpError, AgentTimeout, PeerError, TurnCancelled
from acp_integration.jsonrpc import INTERNAL_ERROR
from acp_integration.transports.transport import RequestId
from acp_integration.types import Update
from acp_integration.wire import methods
from acp_integration.wire.client import RequestPermissionRequest


class _Answer(msgspec.Struct, rename="camel"):
    stop_reason: str
    usage: Any = None
    meta: Any = msgspec.field(name="_meta", default=None)


@dataclass(frozen=True, slots=True)
class PromptResult:
    """How a turn ended.

    Attributes:
        text: everything the agent said, its thoughts left out.
        updates: every update of the turn, in order.
        stop_reason: end_turn, max_tokens, max_turn_requests, refusal, cancelled, or what a newer agent says.
        denials: the permissions the agent asked for in the turn and did not get.
        usage: the tokens the turn took, as the agent sent them, or None.
        meta: the `_meta` of the answer, or None.
    """

    text: str
    updates: tuple[Update, ...]
    stop_reason: str
    denials: tuple[RequestPermissionRequest, ...] = ()
    usage: Any = None
    meta: Any = None

    @property
    def kind(self) -> Literal["result"]:
        """Tells the last item of a stream from the updates before it."""
        return "result"


class Turns(Protocol):
    """What a prompt needs of the connection it was sent on."""

    async def answer(self, pending: Pending, timeout: float | None) -> msgspec.Raw:
        """Wait for the answer to a request."""
        ...

    def reason(self) -> AcpError:
        """Why the connection has ended."""
        ...

    def withdraw_turn(self, handle: "PromptHandle") -> None:
        """Tell the agent that the turn is not wanted any more."""
        ...


class PromptHandle:
    """A prompt that is under way.

    Attributes:
        session_id: the session it belongs to.
        pending: the request it is.
        denials: the permissions that were asked for and not given so far.
    """

    def __init__(self, home: Home, turns: Turns, pending: Pending, unread: Callable[[int], None] | None) -> None:
        self.session_id = pending.session or ""
        self.pending = pending
        self._home = home
        self._turns = turns
        self._unread = unread
        self.denials: list[RequestPermissionRequest] = []
        self._taken = 0
        self._updates: list[Update] = []
        self._scope = anyio.CancelScope()
        self._changed = anyio.Event()
        self._outcome: PromptResult | AcpError | None = None

    @property
    def request_id(self) -> RequestId:
        """The JSON-RPC id of the prompt."""
        return self.pending.id

    @property
    def updates(self) -> tuple[Update, ...]:
        """The updates recorded so far."""
        return tuple(self._updates)

    @property
    def done(self) -> bool:
        """Whether the prompt was answered, or can be answered no more."""
        return self._outcome is not None

    async def result(self) -> PromptResult:
        """Wait for the end of the turn; cancelling the wait leaves the turn running.

        Raises:
            PeerError: if the agent answered with an error; one that withdrew the prompt has the code -32800.
            AgentTimeout: if it did not answer within the prompt timeout.
            AgentExited, ConnectionClosed: if the connection ended.
        TurnCancelled: if `prompt` or `stream` was left before the end.
        """
        return await self._home.run(self._result)

    async def cancel(self) -> None:
        """Ask the agent to stop this turn, and no other; `result` still waits for what it answers."""
        await self._home.run(self._cancel)

    async def next(self, position: int) -> Update | PromptResult:
        """The update at a position once it is here, or the result when there is none."""
        return await self._home.run(self._next, position)

    def leave(self) -> None:
        """Its only caller waits no more: cancel the turn unless it has ended; from any thread."""
        if not self.done:
            self._home.call_soon(self.abandon)

    def abandon(self) -> None:
        """Nobody wants the turn any more: cancel it and wait for nothing. On the home loop."""
        if not self.done:
            self._turns.withdraw_turn(self)
            self._scope.cancel()

    def record(self, update: Update) -> None:
        """Take one update of the turn."""
        self._updates.append(update)
        if self._unread is not None:
            self._unread(1)
        self._notice()

    async def run(self, timeout: float | None) -> None:
        """Wait for the answer and keep it."""
        outcome: PromptResult | AcpError = TurnCancelled(self.session_id)
        try:
            with self._scope:
                outcome = self._read(await self._turns.answer(self.pending, timeout))
        except AgentTimeout as error:
            outcome = error
            self._turns.withdraw_turn(self)
        except AcpError as error:
            outcome = error
        except BaseException:
            outcome = self._turns.reason()
            raise
        finally:
            self._finish(outcome)

    def _read(self, raw: msgspec.Raw) -> PromptResult:
        try:
            answer = msgspec.json.decode(raw, type=_Answer)
        except msgspec.ValidationError as error:
            reason = "missing-result" if bytes(raw) == b"null" else "missing-required-field"
            data = {"reason": reason, "method": methods.SESSION_PROMPT, "field": "stopReason"}
            raise PeerError(INTERNAL_ERROR, "The answer cannot be used", data, method=methods.SESSION_PROMPT) from error
        updates = self.updates
        text = "".join(update.text for update in updates if update.kind == "agent_message_chunk")
        return PromptResult(text, updates, answer.stop_reason, tuple(self.denials), answer.usage, answer.meta)

    def _finish(self, outcome: PromptResult | AcpError) -> None:
        self._outcome = outcome
        if self._unread is not None:
            self._unread(self._taken - len(self._updates))
            self._unread = None
        self._notice()

    async def _cancel(self) -> None:
        if not self.done:
            self._turns.withdraw_turn(self)

    async def _result(self) -> PromptResult:
        while self._outcome is None:
            await self._wait()
        if isinstance(self._outcome, AcpError):
            raise self._outcome
        return self._outcome

    async def _next(self, position: int) -> Update | PromptResult:
        while position >= len(self._updates) and self._outcome is None:
            await self._wait()
        if position >= len(self._updates):
            return await self._result()
        self._taken += 1
        if self._unread is not None:
            self._unread(-1)
        return self._updates[position]

    def _notice(self) -> None:
        self._changed.set()

    async def _wait(self) -> None:
        if self._changed.is_set():
            self._changed = anyio.Event()
        await self._changed.wait()
