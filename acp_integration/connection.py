"""One peer: the one writer towards it, and the requests that wait for its answers.

Knows JSON-RPC, not the protocol's methods. Used by both sides.
"""

import asyncio
import itertools
import logging
import time
from collections.abc import Callable, Container
from typing import Any, Final

import msgspec

from acp_integration import jsonrpc
from acp_integration.errors import ConnectionClosed, PeerError
from acp_integration.transports.transport import Flow, RequestId, Transport

logger = logging.getLogger(__name__)

YIELD_EVERY_UPDATES: Final = 64
YIELD_EVERY_SECONDS: Final = 0.005


class _ErrorObject(msgspec.Struct):
    code: int = jsonrpc.INTERNAL_ERROR
    message: str = "Error"
    data: Any = None


class Pending:
    """A request that was written and not answered yet."""

    __slots__ = ("cancelled", "future", "id", "method", "session")

    def __init__(self, identifier: int, method: str, session: str | None) -> None:
        self.id = identifier
        self.method = method
        self.session = session
        self.cancelled = False
        self.future: asyncio.Future[msgspec.Raw] = asyncio.get_running_loop().create_future()


class Connection:
    """Writes frames to one transport and matches answers to the requests sent through it."""

    def __init__(self, transport: Transport) -> None:
        self.transport = transport
        self.closed: ConnectionClosed | None = None
        self._ids = itertools.count(1)
        self._pending: dict[int, Pending] = {}
        self._input_ended = False
        self._on_input_end: list[Callable[[], object]] = []

    @property
    def pending(self) -> int:
        """How many of our requests the peer has not answered."""
        return len(self._pending)

    def write(self, frame: bytes, session: str | None = None, answers: RequestId | None = None) -> None:
        """Queue one frame behind all that were written before."""
        if logger.isEnabledFor(logging.DEBUG):
            logger.debug("-> %s", frame.decode("utf-8", "replace"))
        self.transport.write(frame, session, answers)

    def notify(self, method: str, params: bytes, session: str | None = None) -> None:
        """Write a notification."""
        self.write(jsonrpc.notification_frame(method, params), session)

    def request(self, method: str, params: bytes, session: str | None = None) -> Pending:
        """Write a request; its future holds the result, PeerError or ConnectionClosed.

        Raises:
            ConnectionClosed: if the connection has ended.
        """
        if self.closed is not None:
            raise ConnectionClosed(self.closed.reason)
        pending = Pending(next(self._ids), method, session)
        self._pending[pending.id] = pending
        self.write(jsonrpc.request_frame(pending.id, method, params), session)
        return pending

    def cancel(self, pending: Pending) -> None:
        """Ask the peer, once, to give a request up; its answer is still awaited."""
        if pending.id in self._pending and not pending.cancelled:
            pending.cancelled = True
            self.notify("$/cancel_request", jsonrpc.encode({"requestId": pending.id}), pending.session)

    def withdraw(self, pending: Pending) -> None:
        """Give a request up: tell the peer once, and drop its answer if it comes."""
        self.cancel(pending)
        self._pending.pop(pending.id, None)

    def settle(self, response: jsonrpc.Response) -> bool:
        """Hand an answer to whoever waits for it; False if nobody does."""
        pending = self._pending.pop(_as_sent(response.id), None)
        if pending is None or pending.future.done():
            logger.debug("Dropped an answer that nobody waits for")
            return False
        if response.error is None:
            pending.future.set_result(response.result)
        else:
            pending.future.set_exception(_peer_error(response.error, pending.method))
        return True

    def when_input_ends(self, callback: Callable[[], object]) -> Callable[[], None]:
        """Call back when the peer can answer no more, at once if that was before; returns what takes it back."""
        if self._input_ended:
            callback()
            return _nothing
        self._on_input_end.append(callback)
        return lambda: self._on_input_end.remove(callback) if callback in self._on_input_end else None

    def end_input(self) -> None:
        """The peer sends nothing more, answers included."""
        self._input_ended = True
        callbacks, self._on_input_end = self._on_input_end, []
        for callback in callbacks:
            callback()

    def close(self, error: ConnectionClosed, spared: Container[RequestId | None] = ()) -> None:
        """Fail what waits for an answer, but for the spared ids, and refuse requests from now on."""
        if self.closed is not None:
            return
        self.closed = error
        waiting, self._pending = self._pending, {}
        for pending in waiting.values():
            if pending.id in spared:
                self._pending[pending.id] = pending
            elif not pending.future.done():
                pending.future.set_exception(ConnectionClosed(error.reason))
                pending.future.exception()  # a request may have been given up by its caller


class Pace:
    """Makes one sender yield to the loop, and wait for a slow reader, every so often.

    Without it a handler that never awaits anything else would starve a cancel and every other session.
    """

    __slots__ = ("_clock", "_flow", "_sent", "_since")

    def __init__(self, flow: Flow, clock: Callable[[], float] = time.monotonic) -> None:
        self._flow = flow
        self._clock = clock
        self._sent = 0
        self._since = clock()

    def due(self) -> bool:
        """Count one send; True if the sender must `rest` now."""
        self._sent += 1
        if self._sent >= YIELD_EVERY_UPDATES or self._clock() - self._since >= YIELD_EVERY_SECONDS:
            return True
        return self._flow.congested

    async def rest(self) -> None:
        """Let everybody else run, and the reader catch up."""
        await asyncio.sleep(0)
        if self._flow.congested:
            await self._flow.drain()
        self._sent = 0
        self._since = self._clock()


def _nothing() -> None:
    return None


def _as_sent(identifier: RequestId | None) -> int:
    """Our ids are integers; a peer that returns one as a string still means it."""
    if isinstance(identifier, int):
        return identifier
    return int(identifier) if identifier is not None and identifier.isascii() and identifier.isdigit() else -1


def _peer_error(raw: msgspec.Raw, method: str) -> PeerError:
    try:
        error = msgspec.json.decode(raw, type=_ErrorObject)
    except msgspec.ValidationError:
        error = _ErrorObject(data=msgspec.json.decode(raw))
    return PeerError(error.code, error.message, error.data, method=method)
