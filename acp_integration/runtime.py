"""An agent on one connection: reads, runs handlers, and ends in order. Owns every task of the connection."""

import asyncio
import logging
from collections.abc import Callable
from typing import Final

import anyio

from acp_integration.binding import BoundAgent
from acp_integration.caller import LOCAL, Caller
from acp_integration.calltasks import CallTasks
from acp_integration.cancellation import Cause
from acp_integration.connection import Connection
from acp_integration.dispatch import Dispatch
from acp_integration.errors import ConnectionClosed
from acp_integration.faults import CANCELLED, fault_of
from acp_integration.idleness import close_idle_sessions
from acp_integration.options import RuntimeOptions
from acp_integration.peer import Peer
from acp_integration.transports.transport import Transport, delivery_of, flush_of
from acp_integration.turns import Call, Turn

logger = logging.getLogger(__name__)

UNREACHABLE_GRACE: Final = 1.0
"""Seconds that cancelled handlers get for their clean-up when nobody can read what they send."""
REFUSAL_SECONDS: Final = 1.0
"""Seconds that aborted handlers get to end; one that swallows every cancellation is left behind then."""


class AgentRuntime:
    """Serves one agent to one client, from the first frame to the last answer."""

    def __init__(
        self, agent: BoundAgent, transport: Transport, caller: Caller = LOCAL, options: RuntimeOptions | None = None
    ) -> None:
        self._transport = transport
        self._flush = flush_of(transport)
        self._options = options or RuntimeOptions()
        self._connection = Connection(transport)
        self._peer = Peer(self._connection, caller, self._options)
        self._agent = agent.connect(self._peer)
        self._dispatch = Dispatch(self._agent, self._peer, self._spawn, self._notice)
        self._tasks = CallTasks(self._handle)
        self._reading: anyio.CancelScope | None = None
        self._changed: anyio.Event | None = None
        self._stopping = False
        self._lost = False

    @property
    def active_turns(self) -> int:
        """How many turns are running or waiting to start."""
        return self._dispatch.active_turns

    @property
    def open_sessions(self) -> int:
        """How many sessions are open."""
        return len(self._peer.sessions)

    @property
    def peer(self) -> Peer:
        """What is known of the client."""
        return self._peer

    def stop(self) -> None:
        """Read no more, cancel what runs, and let `serve` return; called on the connection's loop."""
        self._stopping = True
        self._end_reading()

    async def serve(self) -> None:
        """Serve until the client is gone and everything read was answered.

        Raises:
            ConnectionClosed: if the transport cannot be opened.
        """
        await self._transport.open()
        try:
            self._agent.opened(self._peer)
            async with anyio.create_task_group() as watching:
                watching.start_soon(self._watch_reader)
                if self._options.session_idle_timeout is not None:
                    idle = self._options.session_idle_timeout
                    watching.start_soon(close_idle_sessions, self._peer, self._dispatch, idle)
                await self._serve_calls()
                watching.cancel_scope.cancel()
        finally:
            self._connection.close(ConnectionClosed())
            self._agent.closed(self._peer)
            with anyio.CancelScope(shield=True):
                await self._transport.aclose()

    async def _serve_calls(self) -> None:
        try:
            await self._read()
            await self._wind_down()
        finally:
            for call in self._dispatch.unanswered:
                call.cancel(Cause.CONNECTION, None)
                call.force()
            for call in self._tasks:
                call.stop()
            with anyio.CancelScope(shield=True):
                await self._tasks.end(REFUSAL_SECONDS)

    async def _read(self) -> None:
        with anyio.CancelScope() as self._reading:
            if self._stopping or self._lost:
                return
            deliver = delivery_of(self._transport)
            deliver(self._dispatch.receive)
            try:
                while frames := await self._transport.receive():
                    for frame in frames:
                        self._dispatch.receive(frame)
            except ConnectionClosed as error:
                logger.debug("The transport failed: %s", error)
                self._lost = True
            finally:
                deliver(None)

    async def _watch_reader(self) -> None:
        await self._transport.wait_broken()
        self._lost = True
        self._end_reading()

    def _end_reading(self) -> None:
        if self._reading is not None:
            self._reading.cancel()
        self._notice()

    async def _wind_down(self) -> None:
        self._connection.end_input()
        if not self._lost and not self._stopping:
            with anyio.move_on_after(self._options.drain_timeout):
                await self._until(lambda: self._lost or self._stopping or not self._dispatch.unanswered)
        for call in self._dispatch.unanswered:
            call.cancel(Cause.CONNECTION, None)
        abort = self._options.abort_timeout
        with anyio.move_on_after(min(abort, UNREACHABLE_GRACE) if self._lost else abort):
            await self._until(lambda: not self._dispatch.unanswered)
            await self._peer.sessions.settle()

    async def _until(self, reached: Callable[[], bool]) -> None:
        while not reached():
            self._changed = anyio.Event()
            await self._changed.wait()

    def _notice(self) -> None:
        if self._changed is not None:
            self._changed.set()

    def _spawn(self, call: Call) -> None:
        self._tasks.start(call, call.method)

    async def _handle(self, call: Call) -> None:
        if call.answered:
            return
        handler, signal = self._agent.handlers[call.method], call.cancellation
        task = asyncio.current_task()
        assert task is not None
        signal.delivers = handler.delivers_cancel
        signal.attach(task)
        try:
            with call.start():
                if call.ends is not None:
                    await self._let_end(call.ends)
                call.settle(await handler(call))
        except asyncio.CancelledError:
            call.settle_fault(CANCELLED)
            if not signal.absorb() and task.cancelling():
                raise
        except BaseException as error:
            call.settle_fault(fault_of(error, call.method))
            if isinstance(error, KeyboardInterrupt):
                raise
        finally:
            signal.detach()
            if len(self._tasks) == 1:  # nobody else is about to write, so that waiting would gather nothing
                self._flush()

    async def _let_end(self, turn: Turn) -> None:
        """Cancel the turn of a session that is closed, and wait for its answer."""
        if not turn.answered:
            self._dispatch.cancel_turn(turn.session_id or "", Cause.SESSION_CLOSE)
            await turn.wait_answered()
