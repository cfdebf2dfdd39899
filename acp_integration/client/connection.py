"""The connection to one agent: everything that comes is taken in order, everything that waits ends with it."""

import logging
from collections.abc import Callable
from typing import Any, Final

import anyio
import msgspec
from anyio.abc import TaskGroup

from acp_integration import jsonrpc
from acp_integration.client.answers import CANCELLED
from acp_integration.client.frames import CancelParams, UpdateParams, read_frame
from acp_integration.client.handlers import ClientHandlers
from acp_integration.client.ordering import InboundOrder
from acp_integration.client.prompts import PromptHandle
from acp_integration.client.serving import AgentRequests
from acp_integration.client.turns import RunningPrompts
from acp_integration.connection import Connection, Pending
from acp_integration.errors import AcpError, AgentExited, AgentTimeout, ConnectionClosed, PeerError
from acp_integration.jsonrpc import Invalid, Notification, Request, Response
from acp_integration.options import ClientOptions
from acp_integration.owned import OwnedTask
from acp_integration.transports.transport import Frame, Oversize, Transport
from acp_integration.types import Update
from acp_integration.wire import methods

logger = logging.getLogger(__name__)

CLOSED_BY_US: Final = "The client was closed"


class AgentConnection:
    """Speaks JSON-RPC with one agent; one background task owns the transport and everything that runs on it.

    Every method is called on the loop that opened the connection.

    Attributes:
        prompts: the prompts under way.
        lost: why the connection has ended; None while it has not.
        explain: makes the error a caller sees of the one the agent answered with.
    """

    def __init__(self, transport: Transport, handlers: ClientHandlers, options: ClientOptions) -> None:
        self.transport = transport
        self._options = options
        self._handlers = handlers
        self._connection = Connection(transport)
        self.prompts = RunningPrompts()
        handlers.denied = self.prompts.deny
        self._requests = AgentRequests(self._connection, handlers, self.prompts.session_of)
        self._order = InboundOrder(self._release, self._start_request)
        self._owner = OwnedTask("acp-client")
        self._opened = anyio.Event()
        self._reading: anyio.CancelScope | None = None
        self._tasks: TaskGroup | None = None
        self._started = False
        self._drained = anyio.Event()
        self.lost: AcpError | None = None
        self.explain: Callable[[PeerError], PeerError] = _as_it_is

    async def open(self) -> None:
        """Open the transport; the connection then belongs to its own background task.

        Raises:
            ConnectionClosed: if the agent cannot be reached, or the connection has ended.
        """
        if not self._started:
            self.check_open()
            self._started = True
            self._owner.start(self._live)
        try:
            await self._opened.wait()
        except BaseException:
            self._owner.cancel()
            raise
        self.check_open()

    def check_open(self) -> None:
        """Raise why the connection has ended, if it has."""
        if self.lost is not None:
            raise self.reason()

    def reason(self) -> AcpError:
        """Why the connection has ended, as an error of its own for each caller."""
        lost = self.lost
        if isinstance(lost, AgentExited):
            return AgentExited(
                str(lost), command=lost.command, returncode=lost.returncode, stderr_tail=lost.stderr_tail
            )
        return ConnectionClosed(CLOSED_BY_US if lost is None else str(lost))

    async def send(self, method: str, params: Any, session: str | None = None, *, urgent: bool = True) -> Pending:
        """Write a request, once the agent keeps up with what was written before."""
        self.check_open()
        if self.transport.congested:
            await self.transport.drain()
            self.check_open()
        pending = self._connection.request(method, jsonrpc.encode(params), session)
        self._order.sent(pending.id, urgent=urgent)
        return pending

    async def answer(self, pending: Pending, timeout: float | None) -> msgspec.Raw:
        """Wait for the answer to a request; given up, the request is withdrawn once and its late answer dropped."""
        try:
            with anyio.fail_after(timeout):
                return await pending.future
        except TimeoutError:
            raise self._timed_out(pending.method, timeout or 0.0) from None
        except ConnectionClosed:
            raise self.reason() from None
        except PeerError as error:
            raise self.explain(error) from None
        finally:
            self._order.forget(pending.id)
            self._connection.withdraw(pending)

    async def request(
        self, method: str, params: Any, session: str | None = None, *, timeout: float | None
    ) -> msgspec.Raw:
        """Send a request and wait for its answer.

        Raises:
            PeerError: if the agent answered with an error.
            AgentTimeout: if it did not answer in time.
            AgentExited, ConnectionClosed: if the connection ended.
        """
        return await self.answer(await self.send(method, params, session), timeout)

    def notify(self, method: str, params: Any, session: str | None = None) -> None:
        """Write a notification."""
        self.check_open()
        self._connection.notify(method, jsonrpc.encode(params), session)

    def count_unread(self, updates: int) -> None:
        """So many updates more, or fewer, wait to be read by those who stream; too many make the agent wait."""
        self._order.read(-updates)

    def spawn(self, function: Callable[..., Any], *arguments: Any) -> None:
        """Run a coroutine function in a task that ends with the connection."""
        if self._tasks is None:
            raise self.reason()
        self._tasks.start_soon(function, *arguments)

    def cancel_session(self, session_id: str) -> None:
        """Tell the agent to stop a session's turn, and answer all that it asks of a person there as cancelled."""
        self.notify(methods.SESSION_CANCEL, {"sessionId": session_id}, session_id)
        for request in self._order.take_requests(lambda held: self._asks_person(held, session_id)):
            self._requests.answer_cancelled(request)
        self._requests.cancel_session(session_id)
        self.prompts.when_idle(session_id, self._requests.hold_cancelled(session_id))

    def withdraw_turn(self, handle: PromptHandle) -> None:
        """Ask the agent to stop one turn; a session's only turn is cancelled too, for agents that know nothing else."""
        if self.lost is None and not handle.pending.cancelled:
            self._connection.cancel(handle.pending)
            if self.prompts.alone(handle):
                self.cancel_session(handle.session_id)

    async def aclose(self) -> None:
        """Handle what has come, for at most the request timeout, then close the transport; safe to call twice."""
        self._lose(ConnectionClosed(CLOSED_BY_US))
        if self._reading is not None:
            self._reading.cancel()
        if self._owner.inside:
            self._owner.cancel()
        else:
            await self._owner.wait()

    def close_at_once(self) -> None:
        """Handle nothing more; `aclose` then only waits for the transport."""
        self._lose(ConnectionClosed(CLOSED_BY_US))
        self._owner.cancel()

    async def _live(self) -> None:
        try:
            await self.transport.open()
            async with anyio.create_task_group() as self._tasks:
                self._opened.set()
                self._tasks.start_soon(self._handle_notifications)
                self._tasks.start_soon(self._watch_reader)
                await self._read()
                await self._wind_down()
                self._tasks.cancel_scope.cancel()
        except AcpError as error:
            self._lose(error)
        finally:
            self._lose(ConnectionClosed())
            self._order.release_all()
            self._opened.set()
            with anyio.CancelScope(shield=True):
                await self.transport.aclose()

    async def _read(self) -> None:
        with anyio.CancelScope() as self._reading:
            try:
                while self.lost is None and (frames := await self.transport.receive()):
                    for frame in frames:
                        self._receive(frame)
                    await self._order.room()
                self._lose(ConnectionClosed("The agent closed the connection"))
            except AcpError as error:
                self._lose(error)

    async def _watch_reader(self) -> None:
        await self.transport.wait_broken()
        self._order.hurry()  # the end is near: reading on is how it is noticed

    def _lose(self, error: AcpError) -> None:
        """Fail every call whose answer is not here, and accept no more."""
        if self.lost is None:
            self.lost = error
            self._connection.close(ConnectionClosed(str(error)), self._order.answered)

    async def _wind_down(self) -> None:
        """Let what has come be handled in order, before everything that runs is stopped."""
        self._requests.close()
        self._order.close()
        with anyio.move_on_after(self._options.request_timeout):
            await self._drained.wait()

    async def _handle_notifications(self) -> None:
        while (notification := await self._order.next()) is not None:
            self._order.enter()
            try:
                await self._notified(notification)
            except Exception:  # a notification that cannot be read ends nothing
                logger.exception("A %s notification could not be handled", notification.method)
            finally:
                self._order.handled()
        self._drained.set()

    async def _notified(self, notification: Notification) -> None:
        if notification.method != methods.SESSION_UPDATE:
            await self._handlers.notified(notification)
            return
        params = msgspec.json.decode(notification.params, type=UpdateParams)
        update = Update(params.update, params.sessionId)
        self.prompts.record(update)
        await self._handlers.updated(update)

    def _receive(self, frame: Frame) -> None:
        if isinstance(frame, Oversize):
            logger.error("Dropped a message of more than %d bytes: raise max-message-size", frame.limit)
            return
        message = read_frame(frame)
        if isinstance(message, Response):
            self._order.arrive(message)
        elif isinstance(message, Notification) and message.method == methods.CANCEL_REQUEST:
            self._withdrawn(message)
        elif isinstance(message, Invalid):
            logger.warning("Skipped a message of the agent: %s", message.message)
        else:
            self._order.arrive(message)

    def _withdrawn(self, notification: Notification) -> None:
        """The agent gives up a request of its own: it is answered at once, also while it is held back."""
        try:
            identifier = msgspec.json.decode(notification.params, type=CancelParams).requestId
        except msgspec.DecodeError:
            logger.debug("Skipped a cancel request that names no request")
            return
        if not self._requests.withdraw(identifier):
            for request in self._order.take_requests(lambda held: held.id == identifier):
                self._requests.refuse_cancelled(request)

    def _start_request(self, request: Request) -> None:
        if self._tasks is not None and self.lost is None:
            self._requests.start(request, self._tasks)

    def _release(self, response: Response) -> None:
        self.prompts.answered(response.id)
        self._connection.settle(response)

    def _asks_person(self, request: Request, session_id: str) -> bool:
        return request.method in CANCELLED and self._requests.session(request) == session_id

    def _timed_out(self, method: str, seconds: float) -> AgentTimeout:
        diagnosis = getattr(self.transport, "diagnosis", "")
        text = f"The agent did not answer {method} within {seconds:g} s" + (f" ({diagnosis})" if diagnosis else "")
        return AgentTimeout(text, method=method, seconds=seconds)


def _as_it_is(error: PeerError) -> PeerError:
    return error
