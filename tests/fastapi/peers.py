"""A client of the wire, small enough to see every frame: over a WebSocket, or over HTTP with its event streams."""

import contextlib
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import anyio
import httpx2
import websockets
from anyio.abc import TaskGroup

INITIALIZE = {"protocolVersion": 1, "clientCapabilities": {}}


class Answered(Exception):
    """The agent answered with an error; `code` and `data` are those of the error."""

    def __init__(self, error: dict[str, Any]) -> None:
        super().__init__(error["message"])
        self.code = error["code"]
        self.data = error.get("data")


class Peer:
    """Sends requests and keeps what comes back."""

    def __init__(self) -> None:
        self.updates: list[dict[str, Any]] = []
        self._answers: dict[int, dict[str, Any]] = {}
        self._changed = anyio.Event()
        self._last = 0

    async def write(self, message: dict[str, Any]) -> None:
        raise NotImplementedError

    def take(self, text: str | bytes) -> None:
        message = json.loads(text)
        if message.get("method") == "session/update":
            self.updates.append(message["params"]["update"])
        elif "method" not in message:
            self._answers[message["id"]] = message
        self._changed.set()
        self._changed = anyio.Event()

    async def call(self, method: str, **params: Any) -> Any:
        self._last += 1
        number = self._last
        await self.write({"jsonrpc": "2.0", "id": number, "method": method, "params": params})
        return await self.answer(number)

    async def answer(self, number: int) -> Any:
        with anyio.fail_after(10):
            while number not in self._answers:
                await self._changed.wait()
        message = self._answers.pop(number)
        if "error" in message:
            raise Answered(message["error"])
        return message["result"]

    async def until_updates(self, count: int) -> None:
        with anyio.fail_after(10):
            while len(self.updates) < count:
                await self._changed.wait()

    async def open_session(self) -> str:
        return (await self.call("session/new", cwd="/tmp", mcpServers=[]))["sessionId"]

    async def prompt(self, text: str, session: str | None = None) -> Any:
        session = session or await self.open_session()
        return await self.call("session/prompt", sessionId=session, prompt=[{"type": "text", "text": text}])

    async def say(self, text: str) -> str:
        """One turn; what the agent said in it."""
        before = len(self.updates)
        await self.prompt(text)
        return "".join(update["content"]["text"] for update in self.updates[before:])


class SocketPeer(Peer):
    def __init__(self, socket: websockets.ClientConnection) -> None:
        super().__init__()
        self.socket = socket

    async def write(self, message: dict[str, Any]) -> None:
        await self.socket.send(json.dumps(message))

    async def read(self) -> None:
        with contextlib.suppress(websockets.ConnectionClosed):
            async for text in self.socket:
                self.take(text)


class HttpPeer(Peer):
    def __init__(self, http: httpx2.AsyncClient, url: str, tasks: TaskGroup, headers: dict[str, str]) -> None:
        super().__init__()
        self.http = http
        self.url = url
        self.headers = headers
        self.tasks = tasks

    async def write(self, message: dict[str, Any]) -> None:
        session = message["params"].get("sessionId")
        headers = self.headers | ({"Acp-Session-Id": session} if session else {})
        answer = await self.http.post(self.url, json=message, headers=headers)
        assert answer.status_code == 202, answer.text

    async def connect(self) -> None:
        message = {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": INITIALIZE}
        answer = await self.http.post(self.url, json=message, headers=self.headers)
        assert answer.status_code == 200, (answer.status_code, answer.text)
        self.headers = self.headers | {"Acp-Connection-Id": answer.headers["acp-connection-id"]}
        await self.tasks.start(self.listen)

    async def open_session(self) -> str:
        session = await super().open_session()
        await self.tasks.start(self.listen, session)
        return session

    async def listen(self, session: str | None = None, *, task_status: Any) -> None:
        headers = self.headers | ({"Acp-Session-Id": session} if session else {}) | {"Accept": "text/event-stream"}
        with contextlib.suppress(httpx2.TransportError):
            async with self.http.stream("GET", self.url, headers=headers) as stream:
                assert stream.status_code == 200, stream.status_code
                task_status.started()
                async for line in stream.aiter_lines():
                    if line.startswith("data: "):
                        self.take(line.removeprefix("data: "))

    async def close(self) -> None:
        with contextlib.suppress(httpx2.TransportError):
            await self.http.delete(self.url, headers=self.headers)


@asynccontextmanager
async def over_socket(address: str, **headers: str) -> AsyncIterator[SocketPeer]:
    """An initialized connection over a WebSocket, to ``host:port/path``."""
    async with websockets.connect(f"ws://{address}", additional_headers=headers, proxy=None) as socket:
        peer = SocketPeer(socket)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(peer.read)
            await peer.call("initialize", **INITIALIZE)
            yield peer
            tasks.cancel_scope.cancel()


@asynccontextmanager
async def over_http(address: str, **headers: str) -> AsyncIterator[HttpPeer]:
    """An initialized connection over HTTP, to ``host:port/path``."""
    limits = httpx2.Limits(max_connections=None)
    async with (
        httpx2.AsyncClient(trust_env=False, timeout=20, limits=limits) as http,
        anyio.create_task_group() as tasks,
    ):
        peer = HttpPeer(http, f"http://{address}", tasks, headers)
        await peer.connect()
        yield peer
        await peer.close()
        tasks.cancel_scope.cancel()


OVER = {"http": over_http, "websocket": over_socket}
