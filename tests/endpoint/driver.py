"""Drives an ASGI application without a server: what it receives is scripted, what it sends is recorded or held."""

import itertools
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import anyio

LOCAL = ("127.0.0.1", 50000)


def scope_of(method: str = "POST", headers: dict[str, str] | None = None, **more: Any) -> dict[str, Any]:
    """An HTTP scope as a server makes it."""
    return {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": method,
        "scheme": "http",
        "path": "/acp",
        "root_path": "",
        "query_string": b"",
        "headers": [(name.lower().encode(), value.encode("latin-1")) for name, value in (headers or {}).items()],
        "client": LOCAL,
        "server": ("127.0.0.1", 80),
        **more,
    }


class Call:
    """One scope being served."""

    def __init__(self, app: Any, scope: dict[str, Any], incoming: list[dict[str, Any]]) -> None:
        self.scope = scope
        self.sent: list[dict[str, Any]] = []
        self.ended = anyio.Event()
        self.hold = False
        self.fails_with: Exception | None = None
        self._app = app
        self._incoming = incoming
        self._changed = anyio.Event()

    async def run(self) -> None:
        try:
            await self._app(self.scope, self._receive, self._send)
        finally:
            self.ended.set()
            self._notice()

    def bring(self, message: dict[str, Any]) -> None:
        """Let the application receive one more message."""
        self._incoming.append(message)
        self._notice()

    def disconnect(self) -> None:
        kind = "http.disconnect" if self.scope["type"] == "http" else "websocket.disconnect"
        self.bring({"type": kind, "code": 1006})

    def release(self) -> None:
        """Let sends go through again."""
        self.hold = False
        self._notice()

    @property
    def status(self) -> int | None:
        starts = [message["status"] for message in self.sent if message["type"] == "http.response.start"]
        assert len(starts) <= 1, "more than one response start"
        return starts[0] if starts else None

    @property
    def headers(self) -> dict[str, str]:
        starts = [message for message in self.sent if message["type"] == "http.response.start"]
        return {name.decode(): value.decode() for name, value in starts[0]["headers"]}

    @property
    def body(self) -> bytes:
        return b"".join(m.get("body", b"") for m in self.sent if m["type"] == "http.response.body")

    @property
    def events(self) -> list[tuple[int, Any]]:
        return events_in(self.body)

    @property
    def answers(self) -> dict[Any, Any]:
        """The answers in the stream, by id."""
        return {message["id"]: message for _, message in self.events if "method" not in message}

    async def until(self, reached: Any) -> None:
        """Wait until something is so; fails if the call ends before."""
        while not reached():
            assert not self.ended.is_set(), f"ended with {self.sent[-3:]}"
            await self._changed.wait()

    async def until_events(self, count: int) -> list[tuple[int, Any]]:
        await self.until(lambda: len(self.events) >= count)
        return self.events

    async def _receive(self) -> dict[str, Any]:
        while not self._incoming:
            await self._changed.wait()
        return self._incoming.pop(0)

    async def _send(self, message: dict[str, Any]) -> None:
        while self.hold:
            await self._changed.wait()
        if self.fails_with is not None:
            raise self.fails_with
        self.sent.append(message)
        self._notice()

    def _notice(self) -> None:
        self._changed.set()
        self._changed = anyio.Event()


def events_in(body: bytes) -> list[tuple[int, Any]]:
    """The events of a stream, as id and message."""
    events = []
    for block in body.decode().split("\n\n"):
        fields = dict(line.split(": ", 1) for line in block.split("\n") if ": " in line and not line.startswith(":"))
        if "data" in fields:
            events.append((int(fields["id"]), json.loads(fields["data"])))
    return events


class Driver:
    """Opens scopes on one application; all of them end with it."""

    def __init__(self, app: Any, tasks: anyio.abc.TaskGroup) -> None:
        self.app = app
        self._tasks = tasks
        self._numbers = itertools.count()

    def open(self, scope: dict[str, Any], *incoming: dict[str, Any]) -> Call:
        call = Call(self.app, scope, list(incoming))
        self._tasks.start_soon(call.run)
        return call

    async def request(
        self, method: str, headers: dict[str, str] | None = None, body: bytes = b"", **scope: Any
    ) -> Call:
        """One whole request that ends by itself."""
        call = self.open(scope_of(method, headers, **scope), {"type": "http.request", "body": body, "more_body": False})
        with anyio.fail_after(10):
            await call.ended.wait()
        return call

    async def post(self, message: Any, connection: str | None = None, session: str | None = None, **scope: Any) -> Call:
        body = message if isinstance(message, bytes) else json.dumps(message).encode()
        return await self.request(
            "POST", {"content-type": "application/json", **ids(connection, session)}, body, **scope
        )

    async def stream(
        self, connection: str, session: str | None = None, last_id: int | None = None, **scope: Any
    ) -> Call:
        """An open event stream."""
        headers = {"accept": "text/event-stream", **ids(connection, session)}
        if last_id is not None:
            headers["last-event-id"] = str(last_id)
        call = self.open(scope_of("GET", headers, **scope), {"type": "http.request", "body": b""})
        with anyio.fail_after(10):
            await call.until(lambda: len(call.sent) >= 2)
        return call

    async def connection(self, **scope: Any) -> str:
        """The id of a new connection."""
        call = await self.post(INITIALIZE, **scope)
        assert call.status == 200, call.body
        return call.headers["acp-connection-id"]

    async def session(self, connection: str) -> str:
        """The id of a new session; reads it from the connection's stream."""
        stream = await self.stream(connection)
        identifier = f"new {next(self._numbers)}"
        assert (await self.post(request("session/new", identifier, cwd="/", mcpServers=[]), connection)).status == 202
        await stream.until(lambda: identifier in stream.answers)
        stream.disconnect()
        await stream.ended.wait()
        return str(stream.answers[identifier]["result"]["sessionId"])


def ids(connection: str | None, session: str | None) -> dict[str, str]:
    named = {"acp-connection-id": connection, "acp-session-id": session}
    return {name: value for name, value in named.items() if value is not None}


def request(method: str, identifier: Any = 1, **params: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": identifier, "method": method, "params": params}


def prompt(session: str, text: str, identifier: Any = 1) -> dict[str, Any]:
    return request("session/prompt", identifier, sessionId=session, prompt=[{"type": "text", "text": text}])


INITIALIZE = request("initialize", 0, protocolVersion=1)


@asynccontextmanager
async def driving(app: Any) -> AsyncIterator[Driver]:
    async with anyio.create_task_group() as tasks:
        yield Driver(app, tasks)
        tasks.cancel_scope.cancel()
