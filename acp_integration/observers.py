"""Who is told what happens to connections, sessions and turns: for metrics and logs."""

import logging
import time
from collections.abc import Sequence
from typing import Any

from acp_integration.binding import BoundHandler
from acp_integration.peer import Peer
from acp_integration.turns import Call

logger = logging.getLogger(__name__)


class Observer:
    """Told what happens; override what is needed. Called on the connection's loop: keep it quick.

    What an observer raises is logged and changes nothing.
    """

    def connection_opened(self, peer: Peer) -> None:
        """A client is there."""

    def connection_closed(self, peer: Peer) -> None:
        """A client is gone, and its sessions with it."""

    def session_opened(self, peer: Peer, session_id: str) -> None:
        """A session was created, loaded or resumed."""

    def session_closed(self, peer: Peer, session_id: str) -> None:
        """A session was closed or deleted."""

    def turn_started(self, peer: Peer, session_id: str) -> None:
        """A prompt's handler begins."""

    def turn_ended(self, peer: Peer, session_id: str, seconds: float, *, cancelled: bool) -> None:
        """A prompt was answered."""


class Observers:
    """Tells every observer."""

    def __init__(self, observers: Sequence[Any]) -> None:
        self._observers = tuple(observers)

    def __bool__(self) -> bool:
        return bool(self._observers)

    def tell(self, event: str, *arguments: Any, **named: Any) -> None:
        """Call one method of each observer that has it."""
        for observer in self._observers:
            method = getattr(observer, event, None)
            if method is None:
                continue
            try:
                method(*arguments, **named)
            except Exception:  # an observer must not change what it observes
                logger.warning("An observer failed at %s", event, exc_info=True)

    def watch(self, peer: Peer) -> None:
        """Follow the sessions of a connection from its beginning."""
        peer.sessions.when_opened = lambda session_id: self.tell("session_opened", peer, session_id)
        peer.sessions.when_closed = lambda session_id: self.tell("session_closed", peer, session_id)
        self.tell("connection_opened", peer)


class ObservedPrompt(BoundHandler):
    """Stands around the prompt handler, and tells of its turns."""

    def __init__(self, inner: BoundHandler, observers: Observers) -> None:
        super().__init__(inner.method, inner.name)
        self.kind = inner.kind
        self.delivers_cancel = inner.delivers_cancel
        self._inner = inner
        self._observers = observers

    async def __call__(self, call: Call) -> bytes:
        """Run the handler."""
        started, session_id = time.monotonic(), call.session_id or ""
        self._observers.tell("turn_started", call.peer, session_id)

        def ended() -> None:
            cancelled = call.cancellation.is_cancelled
            self._observers.tell("turn_ended", call.peer, session_id, time.monotonic() - started, cancelled=cancelled)

        call.after_answer(ended)
        return await self._inner(call)
