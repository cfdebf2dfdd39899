"""A client that is no more than its messages: it sends what a test says and keeps what it gets, in order."""

import itertools
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import anyio

from acp_integration.testing.conformance.wire import Frame, Wire

PATIENCE = 20.0
"""Seconds that a test waits for a message."""


class RawPeer:
    """Speaks JSON-RPC over a wire.

    Attributes:
        log: every message received, in order.
    """

    def __init__(self, wire: Wire) -> None:
        self.wire = wire
        self.log: list[Frame] = []
        self.ended = False
        self._ids = itertools.count(1)
        self._changed = anyio.Event()

    async def notify(self, method: str, **params: Any) -> None:
        """Send a notification."""
        await self.wire.send({"jsonrpc": "2.0", "method": method, "params": params})

    async def start(self, method: str, identifier: Any = None, **params: Any) -> Any:
        """Send a request; gives its id."""
        chosen = next(self._ids) if identifier is None else identifier
        await self.wire.send({"jsonrpc": "2.0", "id": chosen, "method": method, "params": params})
        return chosen

    async def call(self, method: str, **params: Any) -> Frame:
        """Send a request and wait for its answer."""
        return await self.answer_to(await self.start(method, **params))

    async def answer(self, question: Frame, result: Any) -> None:
        """Answer a request of the agent."""
        await self.wire.send({"jsonrpc": "2.0", "id": question["id"], "result": result})

    async def answer_to(self, identifier: Any) -> Frame:
        """Wait for the answer to a request."""
        return await self.first(lambda frame: "method" not in frame and _same(frame.get("id"), identifier))

    async def question(self, method: str, after: int = 0) -> Frame:
        """Wait for a request of the agent, among the messages after the first so many."""
        return await self.first(lambda frame: frame.get("method") == method and "id" in frame, after)

    async def first(self, wanted: Callable[[Frame], bool], after: int = 0) -> Frame:
        """Wait for a message.

        Raises:
            TimeoutError: if it does not come.
            EOFError: if it cannot come any more.
        """
        with anyio.fail_after(PATIENCE):
            while True:
                found = next((frame for frame in self.log[after:] if wanted(frame)), None)
                if found is not None:
                    return found
                if self.ended:
                    raise EOFError("the connection has ended")
                await self._changed.wait()

    async def update(self, session: str, text: str) -> Frame:
        """Wait for an update with this text."""
        return await self.first(lambda frame: frame in self.updates(session) and text_of(frame) == text)

    def updates(self, session: str) -> list[Frame]:
        """The updates of a session so far."""
        return [
            frame
            for frame in self.log
            if frame.get("method") == "session/update" and frame["params"]["sessionId"] == session
        ]

    async def initialize(self) -> Frame:
        """Open the protocol without any capability."""
        return await self.call("initialize", protocolVersion=1, clientCapabilities={})

    async def new_session(self) -> str:
        """Open a session."""
        return str((await self.call("session/new", cwd="/", mcpServers=[]))["result"]["sessionId"])

    async def start_prompt(self, session: str, text: str) -> Any:
        """Prompt, without waiting for the answer."""
        return await self.start("session/prompt", sessionId=session, prompt=[{"type": "text", "text": text}])

    async def prompt(self, session: str, text: str) -> Frame:
        """Prompt and wait for the answer."""
        return await self.answer_to(await self.start_prompt(session, text))

    async def receive_all(self) -> None:
        """Keep what comes, until nothing comes any more."""
        try:
            while True:
                self._keep(await self.wire.receive())
        except EOFError:
            self.ended = True
            self._notice()

    def _keep(self, frame: Frame) -> None:
        self.log.append(frame)
        self._notice()

    def _notice(self) -> None:
        self._changed.set()
        self._changed = anyio.Event()


@asynccontextmanager
async def peer_on(wire: Wire) -> AsyncIterator[RawPeer]:
    """A peer that receives while the block runs."""
    peer = RawPeer(wire)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(peer.receive_all)
        yield peer
        tasks.cancel_scope.cancel()


def text_of(update: Frame) -> str | None:
    """The text of a message chunk, None for any other update."""
    content = update["params"]["update"].get("content")
    return content.get("text") if isinstance(content, dict) else None


def _same(one: Any, other: Any) -> bool:
    return type(one) is type(other) and bool(one == other)
