"""The order in which a client takes what an agent sends. A state machine without I/O and without tasks.

Notifications are handled one at a time, as they came. An answer reaches its caller only after every notification that
came before it was handled, and a request of the agent starts only then. There is one exception, without which a handler
could never send a request itself: while the running handler waits for an answer of its own, that answer and the agent's
requests pass it.
"""

from collections import deque
from collections.abc import Callable
from contextvars import ContextVar
from typing import Final

import anyio

from acp_integration.jsonrpc import Notification, Request, Response
from acp_integration.transports.transport import RequestId

_handling: Final[ContextVar[object]] = ContextVar("acp_client_handling", default=None)

Arrival = Notification | Request | Response


class InboundOrder:
    """What came from one agent and may not be acted upon yet.

    Args:
        release: completes the caller of an answered request.
        start: starts the handler of an agent's request.
        limit: how many messages may wait before the reader should pause.
    """

    def __init__(
        self, release: Callable[[Response], object], start: Callable[[Request], object], limit: int = 1024
    ) -> None:
        self._release = release
        self._start = start
        self._limit = limit
        self._held: deque[Arrival] = deque()
        self._running: object = None
        self._own: set[RequestId] = set()
        self._urgent: set[RequestId] = set()
        self._closed = False
        self._hurried = False
        self._changed = anyio.Event()
        self.unread = 0

    def sent(self, identifier: RequestId, *, urgent: bool) -> None:
        """A request was written; one is urgent when its answer is awaited for a bounded time."""
        if self._running is not None and _handling.get() is self._running:
            self._own.add(identifier)
            self._start_held()
        if urgent:
            self._urgent.add(identifier)
        self._notice()

    def forget(self, identifier: RequestId) -> None:
        """Nobody waits for the answer of a request any more."""
        self._own.discard(identifier)
        self._urgent.discard(identifier)

    def arrive(self, message: Arrival) -> None:
        """Take the next message: act upon it now if nothing is before it, else hold it."""
        if isinstance(message, Response) and (self._idle or message.id in self._own):
            self._release(message)
        elif isinstance(message, Request) and (self._idle or self._own):
            self._start(message)
        else:
            self._held.append(message)
            self._notice()

    def advance(self) -> Notification | None:
        """The next notification to handle, once what stands before it has been acted upon; None if there is none."""
        while self._held:
            message = self._held.popleft()
            if isinstance(message, Notification):
                self._running = object()
                return message
            self._act(message)
        self._notice()
        return None

    def enter(self) -> None:
        """Mark the calling task as the handler of the notification taken last, together with every task it starts."""
        _handling.set(self._running)

    @staticmethod
    def leave() -> None:
        """Mark the calling task as no part of any notification's handler."""
        _handling.set(None)

    def handled(self) -> None:
        """The handler of the notification taken last has ended."""
        self._running = None
        self._own.clear()
        self._notice()

    async def next(self) -> Notification | None:
        """Wait for the next notification to handle; None once `close` was called and nothing is held."""
        while (notification := self.advance()) is None and not self._closed:
            await self._wait()
        return notification

    @property
    def full(self) -> bool:
        """Whether the reader should pause: much is waiting, and no answer is awaited for a bounded time."""
        awaited = self._own or self._urgent or self._hurried or self._closed
        return not awaited and len(self._held) + self.unread >= self._limit

    async def room(self) -> None:
        """Wait while the reader should pause."""
        while self.full:
            await self._wait()

    def hurry(self) -> None:
        """Pause the reader no more."""
        self._hurried = True
        self._notice()

    def read(self, count: int = 1) -> None:
        """So many of the updates counted in `unread` were read; negative for more that wait."""
        self.unread -= count
        self._notice()

    def take_requests(self, wanted: Callable[[Request], bool]) -> list[Request]:
        """Remove the held requests that are wanted, to be answered without their handler."""
        taken = [message for message in self._held if isinstance(message, Request) and wanted(message)]
        self._held = deque(message for message in self._held if message not in taken)
        return taken

    @property
    def answered(self) -> set[RequestId | None]:
        """The requests whose answers are held."""
        return {message.id for message in self._held if isinstance(message, Response)}

    def close(self) -> None:
        """Nothing more comes; what is held is still handled, in order."""
        self._closed = True
        self._notice()

    def release_all(self) -> None:
        """Complete every caller whose answer is here, and drop the rest."""
        held, self._held = self._held, deque()
        for message in held:
            if isinstance(message, Response):
                self._release(message)
        self.close()

    @property
    def _idle(self) -> bool:
        return self._running is None and not self._held

    def _act(self, message: Request | Response) -> None:
        if isinstance(message, Response):
            self._release(message)
        else:
            self._start(message)

    def _start_held(self) -> None:
        for request in self.take_requests(lambda _: True):
            self._start(request)

    def _notice(self) -> None:
        self._changed.set()

    async def _wait(self) -> None:
        if self._changed.is_set():
            self._changed = anyio.Event()
        await self._changed.wait()
