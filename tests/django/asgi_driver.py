"""Speaks ASGI to an application without a server, so that open streams and half-open handshakes can be looked at."""

import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import anyio

BOUND = 10.0
INITIALIZE = {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {"protocolVersion": 1}}


class Exchange:
    """One scope while the application serves it: what it sent, and what it is to receive."""

    def __init__(self) -> None:
        self.sent: list[dict[str, Any]] = []
        self.ended = False
        self._to_app, self._receive = anyio.create_memory_object_stream[dict[str, Any]](100)
        self._changed = anyio.Event()

    async def run(self, app: Any, scope: dict[str, Any]) -> None:
        try:
            await app(scope, self._receive.receive, self._record)
        finally:
            self.ended = True
            self._changed.set()
            self._receive.close()
            self._to_app.close()

    async def _record(self, message: dict[str, Any]) -> None:
        self.sent.append(dict(message))
        self._changed.set()

    async def tell(self, **message: Any) -> None:
        await self._to_app.send(message)

    async def seen(self, kind: str, number: int = 1) -> dict[str, Any]:
        """The first, or later, message of a kind, once it was sent."""
        with anyio.fail_after(BOUND):
            while len(found := [message for message in self.sent if message["type"] == kind]) < number:
                assert not self.ended, f"no {kind}, only {self.sent}"
                self._changed = anyio.Event()
                await self._changed.wait()
        return found[number - 1]

    @property
    def status(self) -> int:
        return int(self.sent[0]["status"])

    @property
    def headers(self) -> dict[str, str]:
        return {name.decode().lower(): value.decode() for name, value in self.sent[0]["headers"]}

    @property
    def cookies(self) -> list[str]:
        return [value.decode() for name, value in self.sent[0]["headers"] if name.lower() == b"set-cookie"]

    @property
    def body(self) -> bytes:
        return b"".join(message.get("body", b"") for message in self.sent[1:])

    def json(self) -> Any:
        return json.loads(self.body)


def scope_of(kind: str, method: str, path: str, headers: Mapping[str, str], **more: Any) -> dict[str, Any]:
    named = {"host": "testserver", **{name.lower(): value for name, value in headers.items()}}
    return {
        "type": kind,
        "asgi": {"version": "3.0", "spec_version": "2.3"},
        "http_version": "1.1",
        "method": method,
        "scheme": "http" if kind == "http" else "ws",
        "path": path,
        "raw_path": path.encode(),
        "query_string": b"",
        "root_path": "",
        "headers": [(name.encode(), value.encode()) for name, value in named.items()],
        "client": ("127.0.0.1", 50000),
        "server": ("127.0.0.1", 80),
        "extensions": {},
        **more,
    }


@asynccontextmanager
async def exchange(app: Any, scope: dict[str, Any]) -> AsyncIterator[Exchange]:
    """Run an application on a scope for as long as the block lasts; a client that leaves then says so."""
    opened = Exchange()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(opened.run, app, scope)
        yield opened
        if not opened.ended:
            await opened.tell(type=f"{scope['type']}.disconnect", code=1001)
        with anyio.fail_after(BOUND):
            while not opened.ended:
                await anyio.lowlevel.checkpoint()


async def request(app: Any, method: str, path: str = "/acp", *, body: Any = None, **headers: str) -> Exchange:
    """A whole request and its whole answer; header names are written with underscores."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    if body is not None:
        named.setdefault("content-type", "application/json")
    scope = scope_of("http", method, path, named, client=(named.pop("peer", "127.0.0.1"), 50000))
    done = Exchange()
    data = b"" if body is None else json.dumps(body).encode()
    await done.tell(type="http.request", body=data, more_body=False)
    with anyio.fail_after(BOUND):
        await done.run(app, scope)
    return done


async def initialized(app: Any, **headers: str) -> str:
    """Open a connection over HTTP and return its id."""
    answer = await request(app, "POST", body=INITIALIZE, **headers)
    assert answer.status == 200, answer.body
    return answer.headers["acp-connection-id"]


@asynccontextmanager
async def serving(app: Any) -> AsyncIterator[Exchange]:
    """The lifespan of a server around the block."""
    lifespan = Exchange()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(lifespan.run, app, {"type": "lifespan", "asgi": {"version": "3.0"}})
        await lifespan.tell(type="lifespan.startup")
        await lifespan.seen("lifespan.startup.complete")
        yield lifespan
        await lifespan.tell(type="lifespan.shutdown")
        await lifespan.seen("lifespan.shutdown.complete")


class Socket:
    """A WebSocket client that speaks JSON-RPC."""

    def __init__(self, opened: Exchange) -> None:
        self.exchange = opened
        self._next_id = 0

    async def call(self, method: str, **params: Any) -> dict[str, Any]:
        """Send a request and wait for its answer."""
        self._next_id += 1
        frame = {"jsonrpc": "2.0", "id": self._next_id, "method": method, "params": params}
        await self.exchange.tell(type="websocket.receive", text=json.dumps(frame))
        number = 0
        while True:
            number += 1
            sent = json.loads((await self.exchange.seen("websocket.send", number))["text"])
            if sent.get("id") == self._next_id and "method" not in sent:
                return dict(sent)

    async def ask(self, text: str) -> list[str]:
        """Hold one turn in a new session; the texts of its updates."""
        before = len(self.exchange.sent)
        session = (await self.call("session/new", cwd="/", mcpServers=[]))["result"]["sessionId"]
        answer = await self.call("session/prompt", sessionId=session, prompt=[{"type": "text", "text": text}])
        assert answer["result"]["stopReason"] == "end_turn", answer
        frames = [json.loads(sent["text"]) for sent in self.exchange.sent[before:] if sent["type"] == "websocket.send"]
        updates = [frame["params"]["update"] for frame in frames if frame.get("method") == "session/update"]
        return [update["content"]["text"] for update in updates if "content" in update]


@asynccontextmanager
async def socket(app: Any, path: str = "/acp", **headers: str) -> AsyncIterator[Socket]:
    """An accepted and initialized WebSocket."""
    async with handshake(app, path, **headers) as opened:
        await opened.seen("websocket.accept")
        client = Socket(opened)
        await client.call("initialize", protocolVersion=1)
        yield client


@asynccontextmanager
async def handshake(app: Any, path: str = "/acp", **headers: str) -> AsyncIterator[Exchange]:
    """A WebSocket handshake, accepted or not."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    scope = scope_of("websocket", "GET", path, named, client=(named.pop("peer", "127.0.0.1"), 50000))
    async with exchange(app, scope) as opened:
        await opened.tell(type="websocket.connect")
        yield opened


@asynccontextmanager
async def event_stream(app: Any, path: str = "/acp", **headers: str) -> AsyncIterator[Exchange]:
    """An open event stream."""
    named = {"accept": "text/event-stream", **{name.replace("_", "-"): value for name, value in headers.items()}}
    async with exchange(app, scope_of("http", "GET", path, named)) as opened:
        await opened.tell(type="http.request", body=b"", more_body=False)
        await opened.seen("http.response.start")
        yield opened
