"""One run of an endpoint on one event loop: its tasks, its connections, and how they end."""

import contextvars
import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

import anyio
from anyio.abc import TaskGroup

from acp_integration.caller import Caller
from acp_integration.endpoint.admission import Admission
from acp_integration.endpoint.confinement import Confinement
from acp_integration.endpoint.connections import Connections, Runtime, Served
from acp_integration.endpoint.exchange import Refusal
from acp_integration.endpoint.expiry import Expiry
from acp_integration.endpoint.http_connection import HttpConnection
from acp_integration.options import EndpointOptions
from acp_integration.transports.transport import Transport

logger = logging.getLogger(__name__)

AgentFactory = Callable[[Transport, Caller], Runtime]

SHUTTING_DOWN: Final = "ACP endpoint is shutting down"


class Service:
    """Owns the task in which every connection is served; made when the endpoint starts, gone when it has stopped."""

    def __init__(self, factory: AgentFactory, options: EndpointOptions, place: str = "") -> None:
        self.options = options
        self.admission = Admission(options)
        self.confinement = Confinement(options)
        self.connections = Connections(options, place)
        self.closing = False
        self.ended = anyio.Event()
        self._factory = factory
        self._expiry = Expiry(self.connections, options)
        self._told_to_close = anyio.Event()
        self._changed = anyio.Event()
        self._responses: set[anyio.CancelScope] = set()
        self._tasks: TaskGroup | None = None

    async def run(self, started: anyio.Event, closed: Callable[[], None]) -> None:
        """Serve until told to close, then for at most `shutdown-timeout`.

        Args:
            started: set once requests can be taken.
            closed: called when the end has begun.
        """
        try:
            async with anyio.create_task_group() as self._tasks:
                started.set()
                self._tasks.start_soon(self._expiry.watch)
                await self._told_to_close.wait()
                closed()
                with anyio.move_on_after(self.options.shutdown_timeout) as patience:
                    await self._emptied()
                if patience.cancelled_caught:
                    logger.warning("Cut off %d connections that did not end in time", len(self.connections))
                self._cut_responses()
                self._tasks.cancel_scope.cancel()
        finally:
            self.closing = True
            self._cut_responses()

    def finish(self) -> None:
        """Take nothing more, and let everybody know who waits for the end."""
        self.closing = True
        self.ended.set()

    def close(self) -> None:
        """Refuse new work, cancel every turn and end every connection; safe to call twice."""
        if self.closing:
            return
        self.closing = True
        self._told_to_close.set()
        for served in self.connections:
            if not served.initialized and isinstance(served.transport, HttpConnection):
                served.transport.hang_up()
            served.runtime.stop()

    def cut(self) -> None:
        """End everything now, whatever it is doing."""
        self.close()
        self._cut_responses()
        if self._tasks is not None:
            self._tasks.cancel_scope.cancel()

    def refuse_if_closing(self) -> None:
        """Let no new work in once the end has begun.

        Raises:
            Refusal: with status 503.
        """
        if self.closing or self._tasks is None:
            raise Refusal(503, SHUTTING_DOWN)

    def start(self, transport: Transport, caller: Caller) -> Served:
        """Make the agent of a new connection and let it serve.

        Raises:
            Refusal: with status 503 or 429 if there is no room, or the end has begun.
            Exception: whatever the agent's factory raises.
        """
        self.refuse_if_closing()
        self.connections.check_room(caller.principal)
        runtime = self._factory(transport, caller)
        served = Served(self.connections.new_id(), caller.principal, transport, runtime)
        self.connections.add(served)
        # A connection outlives the request that opened it, so it must not see that request's context variables.
        contextvars.Context().run(self._spawn, served)
        return served

    @contextmanager
    def response(self) -> Iterator[anyio.CancelScope]:
        """Around the part of a request that may last: it is cut off when the endpoint must end."""
        with anyio.CancelScope() as scope:
            self._responses.add(scope)
            try:
                yield scope
            finally:
                self._responses.discard(scope)
                self._notice()

    def _spawn(self, served: Served) -> None:
        if self._tasks is not None:
            self._tasks.start_soon(self._serve, served)

    async def _serve(self, served: Served) -> None:
        try:
            await served.runtime.serve()
        except Exception:
            logger.exception("A connection ended in an error")
        finally:
            self.connections.remove(served)
            with anyio.CancelScope(shield=True):
                await served.transport.aclose()
            self._notice()

    async def _emptied(self) -> None:
        while len(self.connections) or self._responses:
            await self._changed.wait()

    def _notice(self) -> None:
        self._changed.set()
        self._changed = anyio.Event()

    def _cut_responses(self) -> None:
        for scope in tuple(self._responses):
            scope.cancel()
