"""What receivers can hear of agents: sent one after the other, in the order things happened, beside the agent's work.

The sender is the agent's class or function. Every signal comes with `user`, those of sessions and turns with
`session_id`, and `turn_finished` with `seconds` and `cancelled`. Receivers are async, or sync and then they may use the
ORM; one that fails is logged and disturbs nobody.
"""

from functools import partial
from typing import Any, Final

from django.dispatch import Signal

from acp_django.executor import DjangoExecutor
from acp_integration.observers import Observer
from acp_integration.peer import Peer
from acp_integration.relay import Relay

connection_opened: Final = Signal()
connection_closed: Final = Signal()
session_created: Final = Signal()
session_closed: Final = Signal()
turn_started: Final = Signal()
turn_finished: Final = Signal()

_PATIENCE: Final = 5.0  # seconds the end of a process waits for receivers


class SignalObserver(Observer):
    """Sends the signals of one agent."""

    def __init__(self, sender: Any, executor: DjangoExecutor) -> None:
        self._sender = sender
        self._executor = executor
        self._relay = Relay("acp-signals")

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
        await self._relay.settled(_PATIENCE)

    def _send(self, signal: Signal, peer: Peer, **named: Any) -> None:
        if signal.has_listeners(self._sender):
            self._relay.soon(partial(self._deliver, signal, user=peer.caller.user, **named))

    async def _deliver(self, signal: Signal, **named: Any) -> None:
        async with self._executor.scope():
            await signal.asend_robust(self._sender, **named)
