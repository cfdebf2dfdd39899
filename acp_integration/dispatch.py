"""From a frame to a call, when it is read: what it is, whether it is admitted, when it starts. Nothing waits here."""

import logging
import time
from collections.abc import Callable
from typing import Final

import msgspec

from acp_integration import jsonrpc
from acp_integration.binding import BoundAgent
from acp_integration.cancellation import Cause
from acp_integration.faults import Fault, fault_of, method_not_found, unknown_session
from acp_integration.peer import Peer
from acp_integration.scheduling import LANES, Job, Lane, Schedule
from acp_integration.transports.transport import Frame, Oversize, RequestId
from acp_integration.turns import Call, Turn
from acp_integration.wire import methods
from acp_integration.wire.decoding import PARAMS, decode_params

logger = logging.getLogger(__name__)

_NEEDS_OPEN_SESSION: Final = frozenset(
    {
        methods.SESSION_PROMPT,
        methods.SESSION_CLOSE,
        methods.SESSION_SET_MODE,
        methods.SESSION_SET_CONFIG_OPTION,
    }
)
_CONNECTION_SCOPED: Final = frozenset(
    {
        methods.SESSION_NEW,
        methods.SESSION_LOAD,
        methods.SESSION_RESUME,
        methods.SESSION_FORK,
        methods.SESSION_DELETE,
    }
)


class _Named(msgspec.Struct):
    session_id: str | None = msgspec.field(name="sessionId", default=None)


class _Withdrawal(msgspec.Struct):
    request_id: int | str = msgspec.field(name="requestId")


class _Cancel(msgspec.Struct):
    session_id: str = msgspec.field(name="sessionId")


class Dispatch:
    """The inbound half of one connection of an agent."""

    def __init__(
        self, agent: BoundAgent, peer: Peer, spawn: Callable[[Call], None], noticed: Callable[[], None]
    ) -> None:
        self._agent = agent
        self._peer = peer
        self._connection = peer.connection
        self._spawn = spawn
        self._noticed = noticed
        self._schedule = Schedule()
        self._turns: dict[str, Turn] = {}
        self._telling: set[Call] = set()
        self._background = 0
        self._calls: dict[RequestId | None, tuple[Call, Lane, jsonrpc.Request]] = {}

    @property
    def active_turns(self) -> int:
        """How many turns are admitted and not answered."""
        return len(self._turns)

    @property
    def unanswered(self) -> tuple[Call, ...]:
        """The requests that have no answer yet."""
        return tuple(call for call, *_ in self._calls.values())

    def turn_of(self, session_id: str) -> Turn | None:
        """The turn that is active on a session."""
        return self._turns.get(session_id)

    def receive(self, frame: Frame) -> None:
        """Act on one frame."""
        if isinstance(frame, Oversize):
            text = f"Invalid request: the message exceeds {frame.limit} bytes (max-message-size)"
            self._connection.write(jsonrpc.error_frame(None, jsonrpc.INVALID_REQUEST, text))
            return
        if not frame.strip():
            return
        message = jsonrpc.decode(frame)
        if isinstance(message, jsonrpc.Request):
            self._receive_request(message)
        elif isinstance(message, jsonrpc.Notification):
            self._receive_notification(message)
        elif isinstance(message, jsonrpc.Response):
            self._connection.settle(message)
        else:
            self._connection.write(jsonrpc.error_frame(message.id, message.code, message.message))

    def cancel_turn(self, session_id: str, cause: Cause) -> None:
        """Cancel the turn of a session, if there is one, and tell the agent's own cancel handler."""
        turn = self._turns.get(session_id)
        if turn is not None:
            turn.cancel(cause, self._peer.options.cancel_grace_period)
        if methods.SESSION_CANCEL in self._agent.handlers:
            self._tell(session_id)

    def _tell(self, session_id: str) -> None:
        if len(self._telling) >= self._peer.options.max_waiting_controls:
            logger.warning("Dropped a cancel, too many are with the agent's cancel handler already")
            return
        params = decode_params(methods.SESSION_CANCEL, jsonrpc.encode({"sessionId": session_id}))
        call = Call(self._peer, None, methods.SESSION_CANCEL, params, session_id)
        self._telling.add(call)
        call.after_answer(lambda: self._telling.discard(call))
        self._spawn(call)

    def uses(self, session_id: str) -> bool:
        """Whether something of the session is under way."""
        return session_id in self._turns or self._schedule.names(session_id)

    def close_session(self, session_id: str) -> None:
        """Close a session of our own accord, in its place behind what is under way; its close handler runs."""
        if methods.SESSION_CLOSE not in self._agent.handlers:
            self._peer.sessions.remove(session_id)
            return
        params = decode_params(methods.SESSION_CLOSE, jsonrpc.encode({"sessionId": session_id}))
        self._line_up(Call(self._peer, None, methods.SESSION_CLOSE, params, session_id), Lane.SESSION)

    # -- requests -----------------------------------------------------------------------------------------------------

    def _receive_request(self, request: jsonrpc.Request) -> None:
        if request.id in self._calls:
            self._receive_again(request)
            return
        handler = self._agent.handlers.get(request.method)
        if handler is None or handler.notification:
            self._refuse(request, method_not_found(request.method))
            return
        try:
            params = _decode(request.method, request.params)
        except Exception as error:  # noqa: BLE001  # every fault of the peer's params is answered
            self._refuse(request, fault_of(error, request.method))
            return
        self._admit(request, params)

    def _receive_again(self, request: jsonrpc.Request) -> None:
        *_, first = self._calls[request.id]
        if first.method == request.method and bytes(first.params) == bytes(request.params):
            logger.debug("A request in flight was sent again: it runs once")
            return
        self._refuse(request, Fault(jsonrpc.INVALID_REQUEST, "The id is in use by another request in flight"))

    def _refuse(self, request: jsonrpc.Request, fault: Fault) -> None:
        frame = jsonrpc.error_frame(request.id, fault.code, fault.message, fault.data)
        self._connection.write(frame, None, request.id)

    def _admit(self, request: jsonrpc.Request, params: object) -> None:
        session_id = _session_of(params)
        kind = Turn if request.method == methods.SESSION_PROMPT else Call
        call = kind(self._peer, request.id, request.method, params, session_id)
        lane = LANES.get(request.method, Lane.BACKGROUND)
        fault = self._objection(call, lane)
        if fault is not None:
            call.fail(fault)
            return
        if request.method in _CONNECTION_SCOPED:
            call.scoped_to = None
        if request.method == methods.SESSION_CLOSE and session_id is not None:
            call.ends = self._turns.get(session_id)
        self._reserve(call, lane, request)
        self._line_up(call, lane)

    def _objection(self, call: Call, lane: Lane) -> Fault | None:
        options = self._peer.options
        if lane is not Lane.BACKGROUND:
            limit = options.max_waiting_controls
            if self._schedule.waiting_controls >= limit:
                return Fault(jsonrpc.INVALID_REQUEST, "Too many control requests are waiting", {"limit": limit})
            return None
        if call.is_turn and call.session_id in self._turns:
            text = f"There is already an active prompt on session {call.session_id}"
            return Fault(jsonrpc.INVALID_REQUEST, text, {"sessionId": call.session_id})
        if self._background >= options.max_concurrent_requests:
            text = "Too many requests are in progress on this connection"
            return Fault(jsonrpc.INVALID_REQUEST, text, {"limit": options.max_concurrent_requests})
        return None

    def _reserve(self, call: Call, lane: Lane, request: jsonrpc.Request) -> None:
        self._calls[request.id] = (call, lane, request)
        if lane is Lane.BACKGROUND:
            self._background += 1
        if isinstance(call, Turn) and call.session_id is not None:
            self._turns[call.session_id] = call

    def release(self, call: Call) -> None:
        """Give the place of a request free, just before its answer."""
        entry = self._calls.pop(call.id, None)
        if entry is None:  # a notification
            return
        if entry[1] is Lane.BACKGROUND:
            self._background -= 1
        if call.is_turn and self._turns.get(call.session_id or "") is call:
            del self._turns[call.session_id or ""]
            session = self._peer.sessions.find(call.session_id)
            if session is not None:
                session.used = time.monotonic()

    def proceed(self, call: Call) -> None:
        """Begin what waited for a call alone."""
        if call.job is not None and not call.job.waiting:
            self._schedule.finish(call.job)
        self._noticed()

    def _line_up(self, call: Call, lane: Lane) -> None:
        call.owner = self
        if lane is Lane.BACKGROUND and not self._schedule.controls:  # it follows nothing, and nothing follows it
            self._begin(call)
            return
        session = call.session_id if lane in (Lane.SESSION, Lane.BACKGROUND) else None
        call.job = Job(lane, session, lambda: self._begin(call))
        self._schedule.add(call.job)

    def _begin(self, call: Call) -> None:
        session = self._peer.sessions.find(call.session_id)
        if session is not None:
            session.used = time.monotonic()
        if call.answered:
            if call.job is not None:
                self._schedule.finish(call.job)
        elif session is None and call.method in _NEEDS_OPEN_SESSION:
            call.fail(unknown_session(call.session_id or ""))
        else:
            self._spawn(call)

    # -- notifications ------------------------------------------------------------------------------------------------

    def _receive_notification(self, notification: jsonrpc.Notification) -> None:
        if notification.method == methods.CANCEL_REQUEST:
            self._receive_withdrawal(notification)
        elif notification.method == methods.SESSION_CANCEL:
            self._receive_cancel(notification)
        else:
            self._receive_other(notification)

    def _receive_withdrawal(self, notification: jsonrpc.Notification) -> None:
        try:
            identifier = msgspec.json.decode(notification.params, type=_Withdrawal).request_id
        except msgspec.DecodeError:
            logger.debug("Ignored a cancel of a request without a usable id")
            return
        entry = self._calls.get(identifier)
        if entry is not None:
            entry[0].cancel(Cause.CANCEL_REQUEST, self._peer.options.cancel_grace_period)

    def _receive_cancel(self, notification: jsonrpc.Notification) -> None:
        try:
            session_id = msgspec.json.decode(notification.params, type=_Cancel).session_id
        except msgspec.DecodeError:
            logger.warning("Ignored a session/cancel without a session id")
            return
        self.cancel_turn(session_id, Cause.SESSION_CANCEL)

    def _receive_other(self, notification: jsonrpc.Notification) -> None:
        method = notification.method
        handler = self._agent.handlers.get(method)
        if handler is None or not handler.accepts_notifications:
            level = logging.DEBUG if method.startswith("_") else logging.WARNING
            logger.log(level, "Ignored a notification that nobody handles: %.100s", method)
            return
        if self._schedule.controls >= self._peer.options.max_waiting_controls:
            logger.warning("Dropped a notification, too much is under way already: %.100s", method)
            return
        try:
            params = _decode(method, notification.params)
        except Exception as error:  # noqa: BLE001  # a bad notification has no answer and ends nothing
            logger.warning("Ignored a notification with bad params: %s", fault_of(error, method).message)
            return
        self._line_up(Call(self._peer, None, method, params, _session_of(params)), Lane.SESSION)


def _decode(method: str, params: msgspec.Raw) -> object:
    return decode_params(method, params) if method in PARAMS else params


def _session_of(params: object) -> str | None:
    named = getattr(params, "session_id", None)
    if named is None and isinstance(params, msgspec.Raw):
        try:
            named = msgspec.json.decode(params, type=_Named).session_id
        except msgspec.DecodeError:
            return None
    return named if isinstance(named, str) else None
