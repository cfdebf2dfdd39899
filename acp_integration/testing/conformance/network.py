"""How raw JSON-RPC messages reach an agent over the network, as a plain client of HTTP and WebSocket sends them."""

import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

import anyio
import httpx2
from anyio.abc import TaskGroup
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed

from acp_integration.testing.conformance.wire import Frame, Wire, WireRefused
from acp_integration.transports.http import trust_for

_BUFFERED = 100_000


class WebSocketWire:
    """A wire over one WebSocket."""

    def __init__(self, socket: ClientConnection) -> None:
        self._socket = socket

    async def send(self, frame: Frame) -> None:
        """Send one message."""
        try:
            await self._socket.send(json.dumps(frame))
        except ConnectionClosed as closed:
            raise _refusal(closed) from closed

    async def receive(self) -> Frame:
        """The next message."""
        try:
            frame: Frame = json.loads(await self._socket.recv())
        except ConnectionClosed:
            raise EOFError from None
        return frame


@asynccontextmanager
async def websocket_wire(url: str) -> AsyncIterator[Wire]:
    """Open a WebSocket to ``http(s)://host:port/path``."""
    async with connect(f"ws{url.removeprefix('http')}", max_size=None, proxy=None) as socket:
        yield WebSocketWire(socket)


class HttpWire:
    """A wire over Streamable HTTP: a POST for each message, an event stream for the connection and for each session.

    Attributes:
        url: where requests go; it may be changed, to reach another worker.
        connection: the id of the connection.
    """

    def __init__(self, new_client: Callable[[], httpx2.AsyncClient], url: str, tasks: TaskGroup) -> None:
        self.connection: str | None = None
        # One TCP connection a stream: over HTTP/2 the client library stalls answers behind streams on the same one.
        self._new_client = new_client
        self._client = new_client()
        self.url = url
        self._tasks = tasks
        self._questions: dict[Any, str] = {}
        self._streams: set[str] = set()
        self._arrived, self._frames = anyio.create_memory_object_stream[Frame](_BUFFERED)

    async def send(self, frame: Frame) -> None:
        """Post one message."""
        answer = await self._client.post(
            self.url, json=frame, headers=self._headers(_session_of(frame, self._questions))
        )
        if answer.status_code == 200:
            await self._arrived.send(answer.json())
            await self._connected(answer)
        elif answer.status_code != 202:
            raise WireRefused(answer.status_code, answer.text)

    async def receive(self) -> Frame:
        """The next message of any stream."""
        try:
            return await self._frames.receive()
        except anyio.EndOfStream:
            raise EOFError from None

    async def close(self) -> None:
        """End the connection."""
        self._frames.close()
        self._arrived.close()
        if self.connection is not None:
            await self._client.delete(self.url, headers=self._headers(None))
        await self._client.aclose()

    async def _connected(self, answer: httpx2.Response) -> None:
        self.connection = answer.headers.get("acp-connection-id")
        if self.connection is not None:
            await self._tasks.start(self._read, None)

    async def _read(self, session: str | None, *, task_status: anyio.abc.TaskStatus[None]) -> None:
        headers = {"accept": "text/event-stream", **self._headers(session)}
        async with self._new_client() as client, client.stream("GET", self.url, headers=headers) as stream:
            task_status.started()
            async for line in _lines(stream):
                if line.startswith(b"data:"):
                    await self._take(json.loads(line[5:]), session)

    async def _take(self, frame: Frame, session: str | None) -> None:
        if "id" in frame and "method" in frame and session is not None:
            self._questions[frame["id"]] = session
        result = frame.get("result")
        created = result.get("sessionId") if isinstance(result, dict) else None
        if created is not None and created not in self._streams:
            self._streams.add(created)
            await self._tasks.start(self._read, created)
        try:
            await self._arrived.send(frame)
        except anyio.ClosedResourceError:
            return  # nobody receives any more

    def _headers(self, session: str | None) -> dict[str, str]:
        named = {"acp-connection-id": self.connection, "acp-session-id": session}
        return {name: value for name, value in named.items() if value is not None}


@asynccontextmanager
async def http_wire(url: str, *, http2: bool = False, scattered: bool = False) -> AsyncIterator[HttpWire]:
    """Speak Streamable HTTP to a URL, over HTTP/1.1 or, without TLS from the first byte, over HTTP/2.

    Args:
        url: where the endpoint is.
        http2: whether to speak HTTP/2.
        scattered: whether every request gets a TCP connection of its own, so that it may reach any worker.
    """
    limits = httpx2.Limits(max_keepalive_connections=0 if scattered else None)
    options: dict[str, Any] = {"timeout": 60, "trust_env": False, "limits": limits, "verify": trust_for(url)}
    new_client = partial(httpx2.AsyncClient, http1=not http2, http2=http2, **options)
    async with anyio.create_task_group() as tasks:
        wire = HttpWire(new_client, url, tasks)
        try:
            yield wire
        finally:
            with anyio.CancelScope(shield=True), anyio.move_on_after(5):
                await wire.close()
            tasks.cancel_scope.cancel()


async def _lines(stream: httpx2.Response) -> AsyncIterator[bytes]:
    """The lines of an event stream; a line of text ends at more places than one of these."""
    rest = b""
    async for chunk in stream.aiter_bytes():
        *lines, rest = (rest + chunk).split(b"\n")
        for line in lines:
            yield line


def _session_of(frame: Frame, questions: dict[Any, str]) -> str | None:
    if "method" not in frame:
        return questions.get(frame.get("id"))
    params = frame.get("params")
    session = params.get("sessionId") if isinstance(params, dict) else None
    return session if isinstance(session, str) else None


def _refusal(closed: ConnectionClosed) -> WireRefused:
    received = closed.rcvd
    return WireRefused(0) if received is None else WireRefused(received.code, received.reason)
