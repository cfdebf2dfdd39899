"""For a framework that judges a request itself before it hands the raw stream or socket to the endpoint."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any, Final
from urllib.parse import urlsplit

import anyio

from acp_integration.endpoint.exchange import JSON, Message, Receive, Scope
from acp_integration.endpoint.websocket import POLICY_VIOLATION
from acp_integration.jsonrpc import encode

Sending = Callable[[Mapping[str, Any]], Awaitable[None]]

_AS_HTTP: Final = {"ws": "http", "wss": "https"}
_OF_THE_BODY: Final = frozenset({b"content-type", b"content-length", b"content-encoding", b"etag", b"last-modified"})
_RESPONSE_EXTENSION: Final = "websocket.http.response"
_STARTS: Final = frozenset({"http.response.start", "websocket.accept", "websocket.http.response.start"})


@dataclass(slots=True)
class Answer:
    """An HTTP response as it came over ASGI; header names are in lower case."""

    status: int = 500
    headers: list[tuple[bytes, bytes]] = field(default_factory=list)
    body: bytes = b""

    async def record(self, message: Mapping[str, Any]) -> None:
        """Take one message of the response."""
        if message["type"] == "http.response.start":
            self.status = message["status"]
            self.headers = [(bytes(name).lower(), bytes(value)) for name, value in message.get("headers", ())]
        else:
            self.body += message.get("body", b"")

    def header(self, name: bytes) -> str:
        """The value of a header, or an empty text."""
        return dict(self.headers).get(name, b"").decode("latin-1")

    @property
    def for_the_client(self) -> list[tuple[bytes, bytes]]:
        """What middleware added for the client: cookies, CORS and security headers, nothing about the body."""
        return [(name, value) for name, value in self.headers if name not in _OF_THE_BODY]


def json_answer(status: int, text: str = "") -> Answer:
    """An error for programs; without a text, the one that every status has."""
    body = encode({"error": text or phrase_of(status)})
    return Answer(status, [(b"content-type", JSON.encode()), (b"content-length", b"%d" % len(body))], body)


def phrase_of(status: int) -> str:
    """The text that belongs to a status."""
    try:
        return HTTPStatus(status).phrase
    except ValueError:
        return "Refused"


def as_request(scope: Scope) -> dict[str, Any]:
    """A copy of the scope to judge; a WebSocket handshake becomes the GET that it is on the wire."""
    if scope["type"] != "websocket":
        return {**scope}
    return {**scope, "type": "http", "method": "GET", "scheme": _AS_HTTP.get(scope.get("scheme", "ws"), "http")}


def no_body() -> Receive:
    """A `receive` for what is judged without its body, by a client that stays."""
    messages: list[Message] = [{"type": "http.request", "body": b"", "more_body": False}]

    async def receive() -> Message:
        if not messages:
            await anyio.sleep_forever()
        return messages.pop()

    return receive


def for_programs(path: str, answer: Answer) -> Answer:
    """An answer whose page or redirect is turned into a JSON error; what middleware set for the client stays.

    A redirect to the same path wants another scheme or host; any other is taken for the way to a login page.
    """
    if answer.status < 300 or answer.header(b"content-type").startswith((JSON, "text/plain")):
        return answer
    location = answer.header(b"location")
    if answer.status >= 400:
        error = json_answer(answer.status)
    elif urlsplit(location).path.rstrip("/") == path.rstrip("/"):
        error = json_answer(400, f"Use {location}")
    else:
        error = json_answer(401, "Authentication required")
    error.headers += [header for header in answer.for_the_client if header[0] != b"location"]
    return error


async def send_answer(scope: Scope, answer: Answer, receive: Receive, send: Sending) -> None:
    """Send a whole answer to the client of a request, or of a WebSocket handshake that is not accepted."""
    kind = "http.response"
    if scope["type"] == "websocket":
        await receive()  # websocket.connect
        if _RESPONSE_EXTENSION not in (scope.get("extensions") or {}):
            await send({"type": "websocket.close", "code": POLICY_VIOLATION, "reason": phrase_of(answer.status)})
            return
        kind = _RESPONSE_EXTENSION
    await send({"type": f"{kind}.start", "status": answer.status, "headers": answer.headers})
    await send({"type": f"{kind}.body", "body": answer.body})


def adding_headers(send: Sending, added: list[tuple[bytes, bytes]]) -> Sending:
    """A `send` that adds headers to the start of an answer, whose own ones win; cookies add up."""

    async def forward(message: Mapping[str, Any]) -> None:
        if message["type"] in _STARTS:
            own = [(bytes(name).lower(), bytes(value)) for name, value in message.get("headers", ())]
            taken = {name for name, _ in own} - {b"set-cookie"}
            message = {**message, "headers": own + [header for header in added if header[0] not in taken]}
        await send(message)

    return forward
