"""A client that is nothing but frames: over memory, or over the pipes of a real process."""

import json
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager
from typing import Any

import anyio

from acp_integration.assembly import AgentBuilder
from acp_integration.transports.memory import memory_transport_pair

Frame = dict[str, Any]


class RawPeer:
    """Sends what it is told, and records all that comes, in order."""

    def __init__(self, send: Callable[[bytes], Awaitable[None]], end: Callable[[], Awaitable[None]]) -> None:
        self.log: list[Frame] = []
        self.ended = anyio.Event()
        self._send = send
        self.end_input = end
        self._next_id = 0
        self._arrived = anyio.Event()
        self.runtime: Any = None
        self.abandon = anyio.CancelScope()

    def record(self, frames: Iterable[bytes]) -> None:
        self.log.extend(json.loads(frame) for frame in frames)
        self._arrived.set()

    def over(self) -> None:
        self.ended.set()
        self._arrived.set()

    async def write(self, *messages: Frame | bytes) -> None:
        """Send frames in one write."""
        frames = [message if isinstance(message, bytes) else json.dumps(message).encode() for message in messages]
        await self._send(b"".join(frame + b"\n" for frame in frames))

    def request(self, method: str, params: Any = None, **more: Any) -> Frame:
        """A request with an id of its own, not sent yet."""
        self._next_id += 1
        return {"jsonrpc": "2.0", "id": self._next_id, "method": method, "params": params or {}, **more}

    def prompt(self, session: str, text: str) -> Frame:
        return self.request("session/prompt", {"sessionId": session, "prompt": [{"type": "text", "text": text}]})

    @staticmethod
    def notification(method: str, params: Any = None) -> Frame:
        return {"jsonrpc": "2.0", "method": method, "params": params or {}}

    def cancel(self, session: str) -> Frame:
        return self.notification("session/cancel", {"sessionId": session})

    async def call(self, method: str, params: Any = None) -> Frame:
        request = self.request(method, params)
        await self.write(request)
        return await self.answer(request)

    async def answer(self, request: Frame) -> Frame:
        """The answer to a request that was sent."""
        return await self.seen(lambda frame: "method" not in frame and frame.get("id") == request["id"])

    async def seen(self, matches: Callable[[Frame], bool]) -> Frame:
        """The first frame of the whole log that matches, once it is there."""
        position = 0
        with anyio.fail_after(10):
            while True:
                while position < len(self.log):
                    if matches(self.log[position]):
                        return self.log[position]
                    position += 1
                assert not self.ended.is_set(), "the connection ended before the frame came"
                self._arrived = anyio.Event()
                await self._arrived.wait()

    async def says(self, text: str, session: str | None = None) -> Frame:
        """The update that carries a text."""
        return await self.seen(
            lambda frame: text_of(frame) == text and (session is None or frame["params"]["sessionId"] == session)
        )

    async def initialize(self, **capabilities: Any) -> Frame:
        return await self.call("initialize", {"protocolVersion": 1, "clientCapabilities": capabilities})

    async def new_session(self, cwd: str = "/somewhere") -> str:
        answer = await self.call("session/new", {"cwd": cwd, "mcpServers": []})
        session: str = answer["result"]["sessionId"]
        return session

    def answers(self, request: Frame) -> list[Frame]:
        return [frame for frame in self.log if "method" not in frame and frame.get("id") == request["id"]]

    def texts(self, session: str | None = None) -> list[str]:
        updates = [frame for frame in self.log if frame.get("method") == "session/update"]
        return [text_of(frame) or "" for frame in updates if session in (None, frame["params"]["sessionId"])]


def text_of(frame: Frame) -> str | None:
    if frame.get("method") != "session/update":
        return None
    content = frame["params"]["update"].get("content")
    return content.get("text") if isinstance(content, dict) else None


@asynccontextmanager
async def memory_peer(agent: Any, settings: Any = None) -> AsyncIterator[RawPeer]:
    """The agent in this process, over the in-memory transport."""
    client_end, agent_end = memory_transport_pair()

    async def send(data: bytes) -> None:
        for line in data.splitlines():
            client_end.write(line)

    async def end() -> None:
        client_end.end_input()

    peer = RawPeer(send, end)
    peer.runtime = AgentBuilder(agent, settings).build(agent_end)

    async def serve() -> None:
        with peer.abandon:
            await peer.runtime.serve()

    async def read() -> None:
        while frames := await client_end.receive():
            peer.record(frames)
        peer.over()

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(serve)
        await client_end.open()
        tasks.start_soon(read)
        yield peer
        await client_end.aclose()
        with anyio.fail_after(10):
            await peer.ended.wait()


@asynccontextmanager
async def process_peer(open_process: Any, command: list[str], **options: Any) -> AsyncIterator[RawPeer]:
    """The agent in a process of its own, over its standard input and output."""
    process = await open_process(*command, **options)

    async def end() -> None:
        await process.stdin.aclose()

    peer = RawPeer(process.stdin.send, end)
    peer.runtime = process

    async def read() -> None:
        rest = b""
        async for data in process.stdout:
            *lines, rest = (rest + data).split(b"\n")
            peer.record(lines)
        assert rest == b""
        peer.over()

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(read)
        yield peer
        await process.stdin.aclose()
        with anyio.fail_after(20):
            await peer.ended.wait()
            await process.wait()
