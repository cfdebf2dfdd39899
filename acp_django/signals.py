"""What receivers can hear of agents: sent one after the other, in the order things happened, beside the agent's work.

The sender is the agent's class or function. Every signal comes with `user`, those of sessions and turns with
`session_id`, and `turn_finished` with `seconds` and `cancelled`. Receivers are async, or sync and then they may use the
ORM; one that fails is logged and disturbs nobody.
"""

import logging
from collections import deque
from typing import Any, Final

import anyio
from django.dispatch import Signal

from acp_django.executor import DjangoExecutor
from acp_integration.observers import Observer
from acp_integration.owned import OwnedTask
from acp_integration.peer import Peer

logger = logging.getLogger(__name__)

connection_opened: Final = Signal()
connection_closed: Final = Signal()
session_created: Final = Signal()
session_closed: Final = Signal()
turn_started: Final = Signal()
turn_finished: Final = Signal()

_MOST: Final = 10_000  # signals that wait for slow receivers; more are lost, and the log says so
_PATIENCE: Final = 5.0  # seconds the end of a process waits for receivers


class SignalObserver(Observer):
    """Sends the signals of one agent."""

    def __init__(self, sender: Any, executor: DjangoExecutor) -> None:
        self._sender = sender
        self._executor = executor
        self._waiting: deque[tuple[Signal, dict[str, Any]]] = deque()
        self._task: OwnedTask | None = None

    def connection_opened(self, peer: Peer) -> None:
        """A client is there."""
        self._send(connection_opened, peer)

    def connection_closed(self, peer: Peer) -> None:
        """A client is gone."""
        self._send(connection_closed, peer)

    def session_opened(self, peer: Peer, session_id: str) -> None:
        """A session was created, loaded or resumed."""
        self._send(session_created, peer, session_id=session_id)

    def session_closed(self, peer: Peer, session_id: str) -> None:
        """A session was closed or deleted."""
        self._send(session_closed, peer, session_id=session_id)

    def turn_started(self, peer: Peer, session_id: str) -> None:
        """A turn began."""
        self._send(turn_started, peer, session_id=session_id)

    def turn_ended(self, peer: Peer, session_id: str, seconds: float, *, cancelled: bool) -> None:
        """A turn was answered."""
        self._send(turn_finished, peer, session_id=session_id, seconds=seconds, cancelled=cancelled)

    async def settled(self) -> None:
        """Wait, for a few seconds, until the receivers have heard everything."""
        if self._task is not None:
            with anyio.move_on_after(_PATIENCE, shield=True):
                await self._task.wait()

    def _send(self, signal: Signal, peer: Peer, **named: Any) -> None:
        if not signal.has_listeners(self._sender):
            return
        if len(self._waiting) >= _MOST:
            logger.warning("A signal is lost: receivers are slower than what happens")
            return
        self._waiting.append((signal, {"user": peer.caller.user, **named}))
        if self._task is None:
            self._task = OwnedTask("acp-signals")
            self._task.start(self._deliver)

    async def _deliver(self) -> None:
        try:
            while self._waiting:
                signal, named = self._waiting.popleft()
                async with self._executor.scope():
                    await signal.asend_robust(self._sender, **named)
        finally:
            self._task = None
