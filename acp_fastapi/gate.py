"""A route that is a gate only: the application's own dependencies decide, then the raw request is handed over.

A path operation runs once for each request and each WebSocket handshake, guarded as every other one of the app. What it
returns here is no response but an `Admission`: when FastAPI has closed the dependencies, the ASGI application it names
serves the untouched stream or socket, so that nothing of the request is held while a stream is open.
"""

from collections.abc import Sequence
from typing import Any, Final

from fastapi import routing
from fastapi.routing import APIRoute
from starlette.responses import Response
from starlette.routing import BaseRoute, Match
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from acp_integration.endpoint.gate import Answer, as_request, no_body, send_answer

_JUDGEMENT: Final = "acp_fastapi.judgement"


class Admission(Response):
    """Says that the dependencies let a request in, and which application serves it now."""

    def __init__(self, app: ASGIApp, marks: dict[str, Any]) -> None:
        super().__init__()
        self.app = app
        self.marks = marks

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:  # noqa: ARG002
        """Leave word with the gate; nothing is sent."""
        scope[_JUDGEMENT].admission = self
        if self.background is not None:
            await self.background()


class GateRoute(APIRoute):
    """A path operation that also answers WebSocket handshakes and hands over what it lets in."""

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        """Match a handshake as if it were a GET of the same path, which on the wire it is."""
        return super().matches(as_request(scope))

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Run the path operation, then serve the request with what it named, unless it was refused."""
        scope.setdefault("state", {})
        judgement = _Judgement(receive)
        is_socket = scope["type"] == "websocket"
        judged = as_request(scope) if is_socket else scope
        judged[_JUDGEMENT] = judgement
        try:
            await super().handle(judged, no_body() if is_socket else judgement.read, judgement.record)
        finally:
            del judged[_JUDGEMENT]
        if judgement.admission is not None and not judgement.answered:
            scope.update(judgement.admission.marks)
            await judgement.admission.app(scope, judgement.replay, send)
        else:
            await send_answer(scope, judgement.answer, receive, send)  # type: ignore[arg-type]  # changes no message


class _Judgement:
    """What the dependencies made of one request; what they read of its body is kept for who serves it."""

    def __init__(self, receive: Receive) -> None:
        self.admission: Admission | None = None
        self.answer = Answer()
        self.answered = False
        self._receive = receive
        self._read: list[Message] = []

    async def read(self) -> Message:
        self._read.append(await self._receive())
        return self._read[-1]

    async def replay(self) -> Message:
        return self._read.pop(0) if self._read else await self._receive()

    async def record(self, message: Message) -> None:
        self.answered = True
        await self.answer.record(message)


def is_guarded(route: BaseRoute, routes: Sequence[BaseRoute]) -> bool:
    """Whether dependencies of the app, of a router or of an inclusion stand before a gate, wherever it is included.

    Args:
        route: the gate that was matched.
        routes: the routes of the application it was matched in.
    """
    contexts = getattr(routing, "iter_route_contexts", None)
    if contexts is None:  # releases that copy a route, dependencies and all, into the application that includes it
        return bool(isinstance(route, APIRoute) and route.dependencies)
    found = [context for context in contexts(routes) if context.original_route is route]
    return bool(found) and all(context.dependencies for context in found)
