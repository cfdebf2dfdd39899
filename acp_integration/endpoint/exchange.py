"""One HTTP request and its one answer, as ASGI gives and takes them."""

from collections.abc import Awaitable, Callable, Iterable, Mapping, MutableMapping
from typing import Any, Final

import anyio

from acp_integration.caller import HttpRequest

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Headers = Iterable[tuple[str, str]]

TEXT: Final = "text/plain; charset=utf-8"
JSON: Final = "application/json"


class Refusal(Exception):
    """Ends a request with a status and, if there is something to say, a line of plain text."""

    def __init__(self, status: int, text: str = "", headers: Headers = ()) -> None:
        super().__init__(f"{status} {text}")
        self.status = status
        self.text = text
        self.headers = tuple(headers)


class PeerGone(Exception):
    """The peer hung up before its answer was ready; there is nobody to tell."""


class Exchange:
    """The request, read within limits, and the answer, started at most once."""

    def __init__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self.method: str = scope["method"]
        self.headers = header_values(scope)
        self.answered = False
        self._receive = receive
        self._send = send

    def header(self, name: str) -> str | None:
        """The value of a header, None if it is absent or blank."""
        return self.headers.get(name, "").strip() or None

    async def body(self, limit: int, too_large: Refusal) -> bytes:
        """Read the whole body, counted while it arrives.

        Raises:
            Refusal: `too_large`, as soon as the body is known to be over `limit` bytes.
            PeerGone: if the peer hung up.
        """
        announced = self.headers.get("content-length", "")
        if announced.isdecimal() and int(announced) > limit:
            raise too_large
        body = bytearray()
        while True:
            message = await self._receive()
            if message["type"] == "http.disconnect":
                raise PeerGone
            body += message.get("body", b"")
            if len(body) > limit:
                raise too_large
            if not message.get("more_body", False):
                return bytes(body)

    async def disconnected(self) -> None:
        """Wait until the peer has hung up; the body must have been read."""
        while (await self._receive())["type"] != "http.disconnect":
            pass

    async def unless_gone(self, waiting: Callable[[], Awaitable[object]]) -> None:
        """Wait for something on behalf of the peer.

        Raises:
            PeerGone: if the peer hung up first.
        """
        gone = False
        failure: Exception | None = None

        async def watch() -> None:
            nonlocal gone
            await self.disconnected()
            gone = True
            tasks.cancel_scope.cancel()

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(watch)
            try:
                await waiting()
            except Exception as error:  # noqa: BLE001  # raised below, where no task group wraps it
                failure = error
            tasks.cancel_scope.cancel()
        if failure is not None:
            raise failure
        if gone:
            raise PeerGone

    async def answer(self, status: int, body: bytes = b"", content_type: str = TEXT, headers: Headers = ()) -> None:
        """Send the whole answer."""
        described = [("content-length", str(len(body))), *headers]
        if body:
            described.insert(0, ("content-type", content_type))
        await self.start(status, described)
        await self._send({"type": "http.response.body", "body": body})

    async def refuse(self, refusal: Refusal) -> None:
        """Answer with a refusal, unless an answer was started."""
        if not self.answered:
            await self.answer(refusal.status, refusal.text.encode("utf-8", "replace"), headers=refusal.headers)

    async def start(self, status: int, headers: Headers) -> None:
        """Start the answer; its body follows through `write`."""
        self.answered = True
        await self._send({"type": "http.response.start", "status": status, "headers": encoded(headers)})

    async def write(self, chunk: bytes, *, last: bool = False) -> None:
        """Send a part of the body, and say whether it was the last."""
        await self._send({"type": "http.response.body", "body": chunk, "more_body": not last})


def encoded(headers: Headers) -> list[tuple[bytes, bytes]]:
    """Headers as ASGI takes them."""
    return [(name.encode("latin-1"), value.encode("latin-1", "replace")) for name, value in headers]


def header_values(scope: Mapping[str, Any]) -> dict[str, str]:
    """The headers by name in lower case; the values of a repeated one are joined by ", "."""
    headers: dict[str, str] = {}
    for raw_name, raw_value in scope.get("headers", ()):
        name, value = raw_name.decode("latin-1").lower(), raw_value.decode("latin-1")
        headers[name] = f"{headers[name]}, {value}" if name in headers else value
    return headers


def http_request(scope: Scope) -> HttpRequest:
    """The request as the plain values that handlers see."""
    client = scope.get("client")
    return HttpRequest(
        path=scope.get("path", ""),
        query=scope.get("query_string", b"").decode("latin-1"),
        headers=header_values(scope),
        client=(str(client[0]), int(client[1])) if client else None,
        scope=scope,
    )
