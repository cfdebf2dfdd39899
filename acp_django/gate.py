"""The gate: Django's own middleware, URLconf and guards judge a request once, before the endpoint serves it raw."""

from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from dataclasses import dataclass, field
from typing import Any, Final

import anyio
from asgiref.sync import ThreadSensitiveContext, sync_to_async

from acp_django.executor import close_connections

Scope = dict[str, Any]
Message = Mapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[Message], Awaitable[None]]
Application = Callable[[Scope, Receive, Send], Awaitable[None]]

GATE: Final = "acp_django.gate"
_AS_HTTP: Final = {"ws": "http", "wss": "https"}


@dataclass(slots=True)
class Gate:
    """Stands in the scope of a request that Django judges; the view that lets the request pass leaves word here.

    Attributes:
        passed: the scope to serve the request with, or None for as long as it was not let in.
    """

    scope: Scope
    passed: Scope | None = None


@dataclass(slots=True)
class Answer:
    """An HTTP response as it came over ASGI; header names are in lower case."""

    status: int = 500
    headers: list[tuple[bytes, bytes]] = field(default_factory=list)
    body: bytes = b""

    async def record(self, message: Message) -> None:
        """Take one message of the response."""
        if message["type"] == "http.response.start":
            self.status = message["status"]
            self.headers = [(bytes(name).lower(), bytes(value)) for name, value in message.get("headers", ())]
        else:
            self.body += message.get("body", b"")

    def header(self, name: bytes) -> str:
        """The value of a header, or an empty text."""
        return dict(self.headers).get(name, b"").decode("latin-1")


async def judge(application: Application, scope: Scope) -> tuple[Answer, Scope | None]:
    """Run the application once on a request without its body; a WebSocket handshake is shown to it as a GET.

    Returns:
        its answer, and the scope to serve the request with if it was let in.
    """
    gate, answer = Gate(scope), Answer()
    shown = {**scope, GATE: gate}
    if scope["type"] == "websocket":
        shown.update(type="http", method="GET", scheme=_AS_HTTP.get(scope.get("scheme", "ws"), "http"))
    async with ThreadSensitiveContext():
        try:
            await application(shown, _no_body(), answer.record)
        finally:
            with anyio.CancelScope(shield=True):
                await sync_to_async(close_connections)()
    return answer, gate.passed


def _no_body() -> Receive:
    messages: list[MutableMapping[str, Any]] = [{"type": "http.request", "body": b"", "more_body": False}]

    async def receive() -> MutableMapping[str, Any]:
        if not messages:
            await anyio.sleep_forever()
        return messages.pop()

    return receive
