"""What a client that was not let in is told: errors in JSON, and never a page or a redirect."""

from http import HTTPStatus
from typing import Final
from urllib.parse import urlsplit

import msgspec

from acp_django.gate import Answer, Message, Receive, Scope, Send

_OF_THE_BODY: Final = frozenset({b"content-type", b"content-length", b"content-encoding", b"etag", b"last-modified"})
_STARTS: Final = frozenset({"http.response.start", "websocket.accept", "websocket.http.response.start"})
_POLICY_VIOLATION: Final = 1008


def json_refusal(status: int, text: str) -> Answer:
    """An error for programs."""
    body = msgspec.json.encode({"error": text})
    return Answer(status, [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(body))], body)


def for_programs(scope: Scope, answer: Answer) -> Answer:
    """Django's answer with a page or redirect turned into a JSON error; what middleware set for the client stays."""
    if answer.status < 300 or answer.header(b"content-type").startswith(("application/json", "text/plain")):
        return answer
    status, text = answer.status, _phrase(answer.status)
    if status < 400:
        status, text = _instead_of_redirect(scope["path"], answer.header(b"location"))
    refusal = json_refusal(status, text)
    refusal.headers += [header for header in kept_headers(answer) if header[0] != b"location"]
    return refusal


def _instead_of_redirect(path: str, location: str) -> tuple[int, str]:
    """A redirect to the same path wants another scheme or host; any other is taken for the way to a login page."""
    if urlsplit(location).path.rstrip("/") == path.rstrip("/"):
        return 400, f"Use {location}"
    return 401, "Authentication required"


def _phrase(status: int) -> str:
    try:
        return HTTPStatus(status).phrase
    except ValueError:
        return "Refused"


def kept_headers(answer: Answer) -> list[tuple[bytes, bytes]]:
    """What middleware added for the client: cookies, CORS and security headers, nothing about the body."""
    return [(name, value) for name, value in answer.headers if name not in _OF_THE_BODY]


async def send_refusal(scope: Scope, answer: Answer, receive: Receive, send: Send) -> None:
    """Send an answer to the client of a request, or of a WebSocket handshake that is not accepted."""
    refusal, kind = for_programs(scope, answer), "http.response"
    if scope["type"] == "websocket":
        await receive()  # websocket.connect
        if "websocket.http.response" not in (scope.get("extensions") or {}):
            await send({"type": "websocket.close", "code": _POLICY_VIOLATION, "reason": _phrase(refusal.status)})
            return
        kind = "websocket.http.response"
    await send({"type": f"{kind}.start", "status": refusal.status, "headers": refusal.headers})
    await send({"type": f"{kind}.body", "body": refusal.body})


def with_headers(send: Send, answer: Answer) -> Send:
    """A `send` that adds what middleware set to the endpoint's answer, whose own headers win; cookies add up."""
    added = kept_headers(answer)

    async def forward(message: Message) -> None:
        if message["type"] in _STARTS:
            own = [(bytes(name).lower(), bytes(value)) for name, value in message.get("headers", ())]
            taken = {name for name, _ in own} - {b"set-cookie"}
            message = {**message, "headers": own + [header for header in added if header[0] not in taken]}
        await send(message)

    return forward
