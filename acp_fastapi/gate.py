"""A route that is a gate only: the application's own dependencies decide, then the raw request is handed over.

A path operation runs once for each request and each WebSocket handshake, guarded as every other one of the app. What it
returns here is no response but an `Admission`: when FastAPI has closed the dependencies, the ASGI application it names
serves the untouched stream or socket, so that nothing of the request is held while a stream is open.
"""

from collections.abc import Sequence
from typing import Any, Final

import anyio
from fastapi import routing
from fastapi.routing import APIRoute
from starlette.responses import Response
from starlette.routing import BaseRoute, Match
from starlette.types import ASGIApp, Message, Receive, Scope, Send

_KNOCK: Final = "acp_fastapi.knock"
_HTTP_SCHEMES: Final = {"ws": "http", "wss": "https"}
_REFUSAL_EXTENSION: Final = "websocket.http.response"
_POLICY_VIOLATION: Final = 1008


class Admission(Response):
    """Says that the dependencies let a request in, and which application serves it now."""

    def __init__(self, app: ASGIApp, marks: dict[str, Any]) -> None:
        super().__init__()
        self.app = app
        self.marks = marks

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:  # noqa: ARG002
        """Leave word with the gate; nothing is sent."""
        scope[_KNOCK].admission = self
        if self.background is not None:
            await self.background()


class GateRoute(APIRoute):
    """A path operation that also answers WebSocket handshakes and hands over what it lets in."""

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        """Match a handshake as if it were a GET of the same path, which on the wire it is."""
        return super().matches(_as_request(scope))

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Run the path operation, then serve the request with what it named, unless it was refused."""
        knock = (_SocketKnock if scope["type"] == "websocket" else _Knock)(scope, receive, send)
        knock.scope[_KNOCK] = knock
        try:
            await super().handle(knock.scope, knock.receive, knock.send)
        finally:
            del knock.scope[_KNOCK]
        if knock.admission is not None and not knock.answered:
            scope.update(knock.admission.marks)
            await knock.admission.app(scope, knock.replay, send)
        else:
            await knock.refuse()


class _Knock:
    """One request while the dependencies look at it; what they read of its body is kept for who serves it."""

    def __init__(self, scope: Scope, receive: Receive, send: Send) -> None:
        scope.setdefault("state", {})
        self.scope = _as_request(scope)
        self.admission: Admission | None = None
        self.answered = False
        self._receive = receive
        self._send = send
        self._read: list[Message] = []

    async def receive(self) -> Message:
        message = await self._receive()
        self._read.append(message)
        return message

    async def send(self, message: Message) -> None:
        self.answered = True
        await self._send(message)

    async def replay(self) -> Message:
        return self._read.pop(0) if self._read else await self._receive()

    async def refuse(self) -> None:
        """Nothing is left to do: the refusal was sent as it was made."""


class _SocketKnock(_Knock):
    """A handshake while the dependencies look at it as a GET without a body."""

    def __init__(self, scope: Scope, receive: Receive, send: Send) -> None:
        super().__init__(scope, receive, send)
        self._refusal: list[Message] = []
        self._body_read = False

    async def receive(self) -> Message:
        if self._body_read:
            await anyio.sleep_forever()
        self._body_read = True
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(self, message: Message) -> None:
        self.answered = True
        self._refusal.append(message)

    async def refuse(self) -> None:
        """Answer the handshake with the response the dependencies gave, where the server can send one."""
        await self._receive()
        if _REFUSAL_EXTENSION not in (self.scope.get("extensions") or {}):
            await self._send({"type": "websocket.close", "code": _POLICY_VIOLATION})
            return
        for message in self._refusal:
            kind = message["type"].removeprefix("http.response.")
            await self._send({**message, "type": f"{_REFUSAL_EXTENSION}.{kind}"})


def _as_request(scope: Scope) -> Scope:
    if scope["type"] != "websocket":
        return scope
    return {**scope, "type": "http", "method": "GET", "scheme": _HTTP_SCHEMES.get(scope.get("scheme", "ws"), "http")}


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
