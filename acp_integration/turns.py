"""The life of one call, from the frame that asked for it to its one answer.

A request is claimed when its frame is read, may wait for others, runs in a task of the runtime, and is answered once:
by its handler, by a cancel before it started, or by force when its grace period or its duration is over.
"""

import asyncio
import logging
from collections.abc import Callable
from functools import cache
from typing import Any, Final, Protocol

import anyio
import msgspec

from acp_integration import jsonrpc
from acp_integration.cancellation import Cancellation, Cause
from acp_integration.faults import CANCELLED, Fault
from acp_integration.peer import Peer
from acp_integration.scheduling import Job
from acp_integration.sessions import SessionRecord
from acp_integration.transports.transport import RequestId

logger = logging.getLogger(__name__)

CANCELLED_RESULT: Final = b'{"stopReason":"cancelled"}'
_SESSION_CAUSES: Final = frozenset({Cause.SESSION_CANCEL, Cause.SESSION_CLOSE, Cause.CONNECTION})


class CallOwner(Protocol):
    """Whoever admitted a request, and keeps a place for it until its answer."""

    def release(self, call: "Call") -> None:
        """The answer is about to be handed to the transport, however the call ended."""
        ...

    def proceed(self, call: "Call") -> None:
        """The answer was handed over."""
        ...


class Call:
    """One request or notification that a handler takes care of.

    Attributes:
        id: the id to answer with; None for a notification.
        params: the decoded params.
        session_id: the session named by the params, if any.
        scoped_to: the session whose stream carries the answer; None for the connection's own.
        ends: the turn that was active when this close of its session was read, and is cancelled by it.
        capabilities: what the client had announced when the handler began.
        authenticated: whether the client was authenticated then.
        record: the session that the call creates.
        cancellation: the call's cancel signal.
        answered: whether the one answer was given, so that nothing may follow it.
        owner: who is told of the answer first.
        job: its place in the order, if it has to keep one.
        hard: the scope of the handler once that began, cancelled for good when the call was answered by force.
    """

    is_turn = False

    def __init__(
        self, peer: Peer, identifier: RequestId | None, method: str, params: Any, session_id: str | None
    ) -> None:
        self.peer = peer
        self.connection = peer.connection
        self.id = identifier
        self.method = method
        self.params = params
        self.session_id = session_id
        self.scoped_to: str | None = session_id
        self.ends: Turn | None = None
        self.capabilities: Any = None
        self.authenticated = False
        self.record: SessionRecord | None = None
        self.cancellation = Cancellation()
        self.answered = False
        self.owner: CallOwner | None = None
        self.job: Job | None = None
        self.hard: anyio.CancelScope | None = None
        self._timers: list[asyncio.TimerHandle] | None = None
        self._answered: anyio.Event | None = None
        self._before: list[Callable[[], None]] | None = None
        self._after: list[Callable[[], None]] | None = None

    def start(self) -> anyio.CancelScope:
        """The handler begins, in its place: what the client is known to be now is what the call goes by."""
        self.capabilities = self.peer.capabilities
        self.authenticated = self.peer.authenticated
        self.hard = _scopes()()
        return self.hard

    def before_answer(self, callback: Callable[[], None]) -> None:
        """Call back just before the answer is handed to the transport, however the call ends."""
        if self._before is None:
            self._before = []
        self._before.append(callback)

    def after_answer(self, callback: Callable[[], None]) -> None:
        """Call back just behind the answer, however the call ends."""
        if self._after is None:
            self._after = []
        self._after.append(callback)

    async def wait_answered(self) -> None:
        """Return when the answer was handed to the transport."""
        if not self.answered:
            if self._answered is None:
                self._answered = anyio.Event()
            await self._answered.wait()

    def start_timer(self, seconds: float, expire: Callable[[], None]) -> None:
        """Call `expire` unless the call is answered before."""
        if self._timers is None:
            self._timers = []
        self._timers.append(asyncio.get_running_loop().call_later(seconds, expire))

    def succeed(self, result: bytes) -> bool:
        """Answer with a result that is JSON already; False if there was an answer before."""
        if not self._claim():
            return False
        if self.id is not None:
            self.connection.write(jsonrpc.result_frame(self.id, result), self.scoped_to, self.id)
        self._announce()
        return True

    def fail(self, fault: Fault) -> bool:
        """Answer with an error; False if there was an answer before."""
        if not self._claim():
            return False
        if self.id is not None:
            frame = jsonrpc.error_frame(self.id, fault.code, fault.message, fault.data)
            self.connection.write(frame, self.scoped_to, self.id)
        self._announce()
        return True

    def settle(self, result: bytes) -> None:
        """Answer with what the handler returned."""
        self.succeed(result)

    def settle_fault(self, fault: Fault) -> None:
        """Answer with what became of the handler's exception."""
        self.fail(CANCELLED if self.cancellation.is_cancelled else fault)

    def force(self) -> None:
        """Answer without the handler, and stop it for good."""
        self.fail(CANCELLED)
        self.stop()

    def stop(self) -> None:
        """Cancel the handler for good, if it began."""
        if self.hard is not None:
            self.hard.cancel()

    def cancel(self, cause: Cause, grace: float | None) -> bool:
        """Cancel the call: at once if it did not start, else by telling its handler and giving it the grace period."""
        if self.answered or not self.cancellation.cancel(cause):
            return False
        if self.hard is None:
            self.force()
        elif grace is not None:
            self.start_timer(grace, self._grace_over)
        return True

    def _grace_over(self) -> None:
        logger.warning("The %s handler did not end within its grace period: answered without it", self.method)
        self.force()

    def _claim(self) -> bool:
        if self.answered:
            return False
        self.answered = True
        timers, self._timers = self._timers, None
        for timer in timers or ():
            timer.cancel()
        if self.owner is not None:
            self.owner.release(self)
        before, self._before = self._before, None
        for callback in before or ():
            callback()
        return True

    def _announce(self) -> None:
        if self._answered is not None:
            self._answered.set()
        if self.owner is not None:
            self.owner.proceed(self)
        after, self._after = self._after, None
        for callback in after or ():
            callback()


class Turn(Call):
    """One prompt. Its answer to a cancel is a result, not an error."""

    is_turn = True

    def settle(self, result: bytes) -> None:
        """Answer with what the handler returned, which is `cancelled` after a cancel whatever it says."""
        causes = self.cancellation.causes
        if not causes:
            self.succeed(result)
        elif causes & _SESSION_CAUSES:
            self.succeed(_as_cancelled(result))
        elif Cause.CANCEL_REQUEST in causes:
            self.fail(CANCELLED)
        else:
            self.succeed(result)

    def settle_fault(self, fault: Fault) -> None:
        """Answer with what became of the handler's exception, which is `cancelled` after a cancel."""
        if self.cancellation.causes & _SESSION_CAUSES:
            self.succeed(CANCELLED_RESULT)
        else:
            super().settle_fault(fault)

    def force(self) -> None:
        """Answer `cancelled` without the handler, and stop it for good."""
        self.settle_fault(CANCELLED)
        self.stop()

    def start(self) -> anyio.CancelScope:
        """The handler begins, and with it the time it may take."""
        seconds = self.peer.options.max_prompt_duration
        if seconds is not None:
            self.start_timer(seconds, lambda: self._too_long(seconds))
        return super().start()

    def _too_long(self, seconds: float) -> None:
        limit = iso_duration(seconds)
        cancelling = bool(self.cancellation.causes & _SESSION_CAUSES)
        logger.warning("A turn took longer than %s: answered without its handler", limit)
        if cancelling:
            self.succeed(CANCELLED_RESULT)
        else:
            message = f"Prompt exceeded maxPromptDuration of {limit}"
            self.fail(Fault(jsonrpc.REQUEST_CANCELLED, message, {"maxPromptDuration": limit}))
        self.cancellation.cancel(Cause.DURATION)
        self.stop()


@cache
def _scopes() -> Callable[[], anyio.CancelScope]:
    """What makes a cancel scope on asyncio; anyio looks that up for each, at more than the scope's own cost."""
    return type(anyio.CancelScope())


def _as_cancelled(result: bytes) -> bytes:
    """The handler's own answer with the stop reason replaced, so that its `_meta` reaches the client."""
    answer = msgspec.json.decode(result)
    if not isinstance(answer, dict):
        return CANCELLED_RESULT
    return jsonrpc.encode({**answer, "stopReason": "cancelled"})


def iso_duration(seconds: float) -> str:
    """A duration as ISO 8601 writes it, for example PT1M30S."""
    milliseconds = round(seconds * 1000)
    hours, rest = divmod(milliseconds, 3_600_000)
    minutes, rest = divmod(rest, 60_000)
    whole, fraction = divmod(rest, 1000)
    second = f"{whole}" + (f".{fraction:03d}".rstrip("0") if fraction else "")
    parts = [f"{hours}H" if hours else "", f"{minutes}M" if minutes else "", f"{second}S" if second != "0" else ""]
    return "PT" + ("".join(parts) or "0S")
