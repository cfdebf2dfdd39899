"""WebSocket: one socket is one connection, a text frame is one message."""

import logging
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from typing import Final

import anyio

from acp_integration.endpoint.exchange import Send
from acp_integration.endpoint.inbox import Inbox
from acp_integration.errors import ConnectionClosed
from acp_integration.options import EndpointOptions
from acp_integration.transports.transport import Frame, RequestId, TransportKind

logger = logging.getLogger(__name__)

NORMAL: Final = 1000
GOING_AWAY: Final = 1001
PROTOCOL_ERROR: Final = 1002
POLICY_VIOLATION: Final = 1008
TOO_BIG: Final = 1009
INTERNAL_ERROR: Final = 1011

STALL_LIMIT: Final = 60.0
"""Seconds that sending one frame may take before the peer counts as gone."""

SLACK: Final = 1.0
"""Seconds by which these limits may be missed, so that not every frame needs a timer of its own."""

FAREWELL: Final = 2.0
"""Seconds that the frame being sent may still take once the socket must close."""

CLOSES_WITHIN: Final = 5.0
"""Seconds that the peer has for what was queued when the connection ends in good order."""


class WebSocketConnection:
    """Implements `Transport`: frames queue up here, and one writer sends them in order."""

    def __init__(self, options: EndpointOptions, send: Send, farewell: Callable[[], int]) -> None:
        self.inbox = Inbox(options.max_message_size)
        self.closing_code: int | None = None
        self.last_frame_at = anyio.current_time()
        self._send = send
        self._farewell = farewell
        self._max_frames = options.max_web_socket_pending_frames
        self._max_bytes = 2 * options.max_message_size
        self._outbox: deque[bytes] = deque()
        self._outbox_bytes = 0
        self._opened = False
        self._reason = ""
        self._sending: anyio.CancelScope | None = None
        self._wake = anyio.Event()
        self._relieved: anyio.Event | None = None
        self._gone = anyio.Event()
        self._done = anyio.Event()

    @property
    def kind(self) -> TransportKind:
        """How the peer is reached."""
        return "websocket"

    async def open(self) -> None:
        """Start; the handshake was made before."""
        if self._opened:
            raise ConnectionClosed("The transport was opened before")
        self._opened = True

    async def receive(self) -> Sequence[Frame]:
        """The messages that were received."""
        return await self.inbox.take()

    def write(self, frame: bytes, session: str | None = None, answers: RequestId | None = None) -> None:  # noqa: ARG002
        """Queue one frame; one more than may wait closes the socket."""
        if self.closing_code is not None or self._gone.is_set():
            return
        self._outbox.append(frame)
        self._outbox_bytes += len(frame)
        if len(self._outbox) > self._max_frames or self._outbox_bytes > self._max_bytes:
            self.fail(INTERNAL_ERROR, "too many pending frames")
        self._wake.set()

    @property
    def congested(self) -> bool:
        """Whether half of what may wait does."""
        return len(self._outbox) * 2 >= self._max_frames or self._outbox_bytes * 2 >= self._max_bytes

    async def drain(self) -> None:
        """Wait until the peer has read enough, or can read no more."""
        while self.congested and not self._gone.is_set():
            if self._relieved is None:
                self._relieved = anyio.Event()
            await self._relieved.wait()

    async def wait_broken(self) -> None:
        """Wait until the peer is gone, or the socket was closed on it."""
        await self._gone.wait()

    async def aclose(self) -> None:
        """Send what is queued, then close; after a failure only wait for the socket to be closed."""
        self.close(self._farewell())
        with anyio.move_on_after(CLOSES_WITHIN):
            await self._done.wait()
        self.lose()

    def close(self, code: int, reason: str = "") -> None:
        """Close the socket behind what is queued; the first code given counts."""
        if self.closing_code is None:
            self.closing_code, self._reason = code, reason
        self.inbox.close()
        self._wake.set()

    def fail(self, code: int, reason: str) -> None:
        """Close the socket at once: what is queued is dropped."""
        logger.info("Closed a WebSocket with code %d: %s", code, reason)
        self._empty()
        self.close(code, reason)
        self.lose()
        if self._sending is not None:
            self._sending.deadline = min(self._sending.deadline, anyio.current_time() + FAREWELL)

    def lose(self) -> None:
        """The peer is gone: nothing more is received, and what is written is dropped."""
        self.inbox.close()
        self._gone.set()
        self._relieve()
        self._wake.set()

    def ended(self) -> None:
        """The server's side of the socket is over."""
        self._empty()
        self.lose()
        self._done.set()

    async def send_all(self) -> None:
        """Be the one writer, until the socket is closed or lost."""
        while True:
            if not await self._within_limit(self._send_queued):
                return
            if self.closing_code is not None:
                await self._within_limit(self._send_close)
                return
            if self._gone.is_set():
                return
            await self._wake.wait()
            self._wake = anyio.Event()

    async def _send_queued(self) -> None:
        while self._outbox and not self._gone.is_set():
            self._allow_more_time()
            frame = self._outbox.popleft()
            self._outbox_bytes -= len(frame)
            await self._send({"type": "websocket.send", "text": frame.decode("utf-8", "replace")})
            self.last_frame_at = anyio.current_time()
            self._relieve()

    async def _send_close(self) -> None:
        await self._send({"type": "websocket.close", "code": self.closing_code, "reason": self._reason})

    async def _within_limit(self, send: Callable[[], Awaitable[None]]) -> bool:
        """Whether the socket can still be written to."""
        with anyio.move_on_after(self._limit) as self._sending:
            try:
                await send()
            except Exception:  # each server has its own error for a peer that left
                logger.debug("A WebSocket broke while it was written", exc_info=True)
                self.fail(INTERNAL_ERROR, "send failed")
                return False
        if self._sending.cancelled_caught:
            self.fail(INTERNAL_ERROR, "the peer does not read")
        return True

    @property
    def _limit(self) -> float:
        return STALL_LIMIT if self.closing_code is None else FAREWELL

    def _allow_more_time(self) -> None:
        """Give the next frame its own time, unless what is left comes close to it."""
        deadline = anyio.current_time() + self._limit
        if self._sending is not None and abs(deadline - self._sending.deadline) >= SLACK:
            self._sending.deadline = deadline

    def _relieve(self) -> None:
        if self._relieved is not None:
            self._relieved.set()
            self._relieved = None

    def _empty(self) -> None:
        self._outbox.clear()
        self._outbox_bytes = 0
