"""An agent that answers what a test tells it to and remembers what it was asked."""

import inspect
import itertools
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import anyio
import msgspec
from anyio.abc import TaskGroup

from acp_integration import jsonrpc
from acp_integration.connection import Connection
from acp_integration.errors import ConnectionClosed, RequestError
from acp_integration.owned import OwnedTask
from acp_integration.transports.memory import MemoryTransport, memory_transport_pair
from acp_integration.transports.transport import Oversize, RequestId
from acp_integration.wire import methods

NEVER: Final = object()
"""An answer that is never given."""


@dataclass(frozen=True, slots=True)
class Received:
    """One message the agent got; `id` is None for a notification."""

    method: str
    params: Any
    id: RequestId | None = None


class MockAgent:
    """Plays an agent in memory, on the level of the protocol's messages.

    Used with ``async with``; `transport` is the end to build a client on. Every request gets the answer registered for
    its method: a JSON value, or a function of the params, sync or async, that returns one or raises `RequestError`.

    Attributes:
        transport: the client's end.
        received: every message so far, in order.
    """

    def __init__(self, *, capabilities: Mapping[str, Any] | None = None) -> None:
        self.transport, self._own_end = memory_transport_pair()
        self.received: list[Received] = []
        self._ids = itertools.count(1)
        self._changed = anyio.Event()
        self._connection = Connection(self._own_end)
        self._serving = OwnedTask("acp-mock-agent")
        self._tasks: TaskGroup | None = None
        self._answers: dict[str, Any] = {
            methods.INITIALIZE: {"protocolVersion": 1, "agentCapabilities": dict(capabilities or {})},
            methods.SESSION_NEW: lambda _: {"sessionId": f"session-{next(self._ids)}"},
            methods.SESSION_PROMPT: {"stopReason": "end_turn"},
        }

    async def __aenter__(self) -> "MockAgent":
        self._serving.start(self._serve)
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._serving.stop()

    @property
    def own_end(self) -> MemoryTransport:
        """The agent's end, to write what no agent should."""
        return self._own_end

    def answer(self, method: str, answer: Any) -> None:
        """Register the answer of a method: a JSON value, a function of the params, or NEVER."""
        self._answers[method] = answer

    def update(self, session_id: str, **update: Any) -> None:
        """Send an update, for example ``update(session_id, sessionUpdate="agent_message_chunk", content={...})``."""
        self.notify(methods.SESSION_UPDATE, {"sessionId": session_id, "update": update})

    def say(self, session_id: str, text: str) -> None:
        """Send a piece of the agent's message."""
        self.update(session_id, sessionUpdate="agent_message_chunk", content={"type": "text", "text": text})

    def notify(self, method: str, params: Any) -> None:
        """Send a notification."""
        self._connection.notify(method, jsonrpc.encode(params))

    async def request(self, method: str, params: Any) -> Any:
        """Send a request to the client and wait for its result; PeerError if it answers with an error."""
        pending = self._connection.request(method, jsonrpc.encode(params))
        return msgspec.json.decode(await pending.future)

    async def wait_for(self, method: str, count: int = 1) -> list[Received]:
        """Wait until a method was received so many times; returns them all."""
        while len(found := [message for message in self.received if message.method == method]) < count:
            if self._changed.is_set():
                self._changed = anyio.Event()
            await self._changed.wait()
        return found

    async def hang_up(self) -> None:
        """End the connection as an agent does that exits."""
        await self._own_end.aclose()

    async def _serve(self) -> None:
        await self._own_end.open()
        async with anyio.create_task_group() as self._tasks:
            while frames := await self._own_end.receive():
                for frame in frames:
                    self._receive(frame)
            self._connection.close(ConnectionClosed())
            self._tasks.cancel_scope.cancel()
        await self._own_end.aclose()

    def _receive(self, frame: bytes | Oversize) -> None:
        assert isinstance(frame, bytes)  # memory has no limit
        message = jsonrpc.decode(frame)
        if isinstance(message, jsonrpc.Response):
            self._connection.settle(message)
        elif not isinstance(message, jsonrpc.Invalid):
            identifier = message.id if isinstance(message, jsonrpc.Request) else None
            received = Received(message.method, msgspec.json.decode(message.params), identifier)
            self.received.append(received)
            self._changed.set()
            if identifier is not None and self._tasks is not None:
                self._tasks.start_soon(self._reply, received)

    async def _reply(self, received: Received) -> None:
        answer = self._answers.get(received.method, {})
        try:
            if callable(answer):
                answer = answer(received.params)
                answer = await answer if inspect.isawaitable(answer) else answer
        except RequestError as error:
            self._connection.write(jsonrpc.error_frame(received.id, error.code, error.message, error.data))
            return
        if answer is not NEVER and received.id is not None:
            self._connection.write(jsonrpc.result_frame(received.id, jsonrpc.encode(answer)))
