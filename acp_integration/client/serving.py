"""The agent's requests to a client: each runs in a task of its own and is answered exactly once, whatever races."""

import logging
from collections import Counter
from collections.abc import Callable
from typing import Any, Final

import anyio
import msgspec
from anyio.abc import TaskGroup

from acp_integration import jsonrpc
from acp_integration.client.answers import CANCELLED
from acp_integration.client.handlers import ClientHandlers
from acp_integration.client.ordering import InboundOrder
from acp_integration.connection import Connection
from acp_integration.faults import Fault, fault_of
from acp_integration.jsonrpc import Request
from acp_integration.transports.transport import RequestId

logger = logging.getLogger(__name__)

MAX_REQUESTS: Final = 256
"""How many requests of one agent may be unanswered; one more is refused."""


class _Scope(msgspec.Struct):
    sessionId: str | None = None  # noqa: N815  # as the protocol spells it
    requestId: RequestId | None = None  # noqa: N815


class _Served:
    """One request of the agent."""

    __slots__ = ("request", "scope", "session")

    def __init__(self, request: Request, session: str | None) -> None:
        self.request = request
        self.session = session
        self.scope = anyio.CancelScope()


class AgentRequests:
    """Runs the handlers of an agent's requests.

    Args:
        connection: what answers are written to.
        handlers: what the application does with requests.
        session_of: the session that one of our own requests belongs to, for a question about that request.
    """

    def __init__(
        self, connection: Connection, handlers: ClientHandlers, session_of: Callable[[RequestId], str | None]
    ) -> None:
        self._connection = connection
        self._handlers = handlers
        self._session_of = session_of
        self._served: dict[RequestId, _Served] = {}
        self._cancelled_sessions: Counter[str] = Counter()

    def start(self, request: Request, tasks: TaskGroup) -> None:
        """Run the handler of a request, unless its turn was cancelled already."""
        served = _Served(request, self.session(request))
        if request.id in self._served or len(self._served) >= MAX_REQUESTS:
            self._refuse(request)
        elif served.session in self._cancelled_sessions and request.method in CANCELLED:
            self.answer_cancelled(request)
        else:
            self._served[request.id] = served
            tasks.start_soon(self._serve, served)

    def session(self, request: Request) -> str | None:
        """The session a request belongs to."""
        try:
            scope = msgspec.json.decode(request.params, type=_Scope)
        except msgspec.DecodeError:
            return None
        if scope.sessionId is None and scope.requestId is not None:
            return self._session_of(scope.requestId)
        return scope.sessionId

    def withdraw(self, identifier: RequestId) -> bool:
        """The agent needs the answer no more: say so, and stop the handler; False if the request is not running."""
        served = self._served.get(identifier)
        if served is None:
            return False
        self._fail(served, Fault(jsonrpc.REQUEST_CANCELLED, "Request cancelled"))
        served.scope.cancel()
        return True

    def cancel_session(self, session_id: str) -> None:
        """Answer what waits for a person in a session as cancelled, and stop asking."""
        for served in list(self._served.values()):
            if served.session == session_id and served.request.method in CANCELLED:
                self._settle(served, _cancelled(served.request))
                served.scope.cancel()

    def answer_cancelled(self, request: Request) -> None:
        """Answer a request that waits for a person as cancelled, without asking."""
        self._connection.write(_cancelled(request), self.session(request), request.id)

    def refuse_cancelled(self, request: Request) -> None:
        """Answer a request that the agent gave up before it was started."""
        self._write_fault(request, Fault(jsonrpc.REQUEST_CANCELLED, "Request cancelled"))

    def hold_cancelled(self, session_id: str) -> Callable[[], None]:
        """Until the returned function is called, what a session asks of a person is cancelled as it comes."""
        self._cancelled_sessions[session_id] += 1

        def let_go() -> None:
            self._cancelled_sessions[session_id] -= 1
            self._cancelled_sessions += Counter()  # forgets what is back at zero

        return let_go

    def close(self) -> None:
        """Answer everything that is running as cancelled, and stop it."""
        for identifier in list(self._served):
            self.withdraw(identifier)

    async def _serve(self, served: _Served) -> None:
        InboundOrder.leave()
        with served.scope:
            try:
                result = await self._handlers.answer(served.request)
            except Exception as error:  # noqa: BLE001  # the boundary: whatever a handler raises becomes an answer
                self._fail(served, fault_of(error, served.request.method))
            else:
                self._settle(served, jsonrpc.result_frame(served.request.id, result))

    def _fail(self, served: _Served, fault: Fault) -> None:
        self._settle(served, jsonrpc.error_frame(served.request.id, fault.code, fault.message, fault.data))

    def _settle(self, served: _Served, frame: bytes) -> None:
        if self._served.get(served.request.id) is served:
            del self._served[served.request.id]
            self._connection.write(frame, served.session, served.request.id)

    def _refuse(self, request: Request) -> None:
        logger.warning("Refused %s: too many requests of the agent wait, or its id is in use", request.method)
        message = "Invalid request: its id is in use, or too many requests wait"
        self._write_fault(request, Fault(jsonrpc.INVALID_REQUEST, message))

    def _write_fault(self, request: Request, fault: Fault) -> None:
        frame = jsonrpc.error_frame(request.id, fault.code, fault.message, fault.data)
        self._connection.write(frame, self.session(request), request.id)


def _cancelled(request: Request) -> bytes:
    answer: Any = CANCELLED[request.method]
    return jsonrpc.result_frame(request.id, jsonrpc.encode(answer))
