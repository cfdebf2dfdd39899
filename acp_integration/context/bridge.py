"""From a handler's thread to the connection's loop and back: updates without waiting, everything else blocking."""

import asyncio
import threading
from collections import deque
from collections.abc import Callable, Coroutine
from typing import Any, Final, TypeVar

import anyio
import anyio.from_thread
from anyio.lowlevel import current_token

from acp_integration.connection import YIELD_EVERY_UPDATES
from acp_integration.context.sender import Sender
from acp_integration.errors import TurnCancelled
from acp_integration.turns import Call

T = TypeVar("T")

_WRONG_THREAD: Final = "A blocking call would stop the event loop for ever: use the async context, or a sync handler"


class ThreadBridge:
    """Takes the calls of the threads on which one handler call runs; made on the loop."""

    __slots__ = ("_call", "_home", "_loop", "_outbox", "_scheduled", "_sent", "_token")

    def __init__(self, call: Call) -> None:
        self._call = call
        self._home = threading.get_ident()
        if call.peer.home is None:
            call.peer.home = current_token()
        self._token = call.peer.home
        self._loop = asyncio.get_running_loop()
        self._outbox: deque[tuple[Sender, bytes]] = deque()
        self._scheduled = False
        self._sent = 0

    @property
    def at_home(self) -> bool:
        """Whether this code runs on the loop's own thread."""
        return threading.get_ident() == self._home

    def check(self) -> None:
        """Raise TurnCancelled if the call was cancelled."""
        if self._call.cancellation.is_cancelled:
            raise TurnCancelled(self._call.session_id)

    def send(self, sender: Sender, update: bytes) -> None:
        """Hand an update to the loop; blocks now and then, until the loop has caught up and the client reads.

        Raises:
            TurnCancelled: if the call was cancelled.
        """
        self.check()
        self._outbox.append((sender, update))
        self._sent += 1
        if self._sent % YIELD_EVERY_UPDATES == 0 or self._call.connection.transport.congested:
            self.run(self._catch_up, sender)
        elif not self._scheduled:
            self._scheduled = True
            self._loop.call_soon_threadsafe(self.flush)

    def run(self, function: Callable[..., Coroutine[Any, Any, T]], *arguments: Any) -> T:
        """Run a coroutine function on the loop and wait for it.

        Raises:
            TurnCancelled: if the call was cancelled.
        """
        self.check()
        return self.run_regardless(function, *arguments)

    def run_regardless(self, function: Callable[..., Coroutine[Any, Any, T]], *arguments: Any) -> T:
        """The same for what must also happen after a cancel."""
        if self.at_home:
            raise RuntimeError(_WRONG_THREAD)
        return anyio.from_thread.run(function, *arguments, token=self._token)

    def flush(self) -> None:
        """Write what the threads handed over; on the loop."""
        # Cleared first: a thread that still sees it set has put its update where the loop below finds it.
        self._scheduled = False
        while self._outbox:
            sender, update = self._outbox.popleft()
            sender.write(update)

    async def _catch_up(self, sender: Sender) -> None:
        self.flush()
        with anyio.CancelScope() as scope:
            take_back = self._call.cancellation.on_cancel(scope.cancel)
            await sender.rest()
        take_back()
