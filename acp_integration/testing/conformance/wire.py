"""How raw JSON-RPC messages reach an agent and come back: in memory, or to a process."""

import json
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from subprocess import PIPE
from typing import Any, Protocol

import anyio
from anyio.streams.buffered import BufferedByteReceiveStream

from acp_integration.assembly import AgentBuilder
from acp_integration.owned import OwnedTask
from acp_integration.transports.memory import memory_transport_pair
from acp_integration.transports.transport import Transport

Frame = dict[str, Any]

MAX_LINE = 64 * 1024 * 1024


class WireRefused(Exception):
    """A message was not accepted.

    Attributes:
        status: the HTTP status, or the close code of a WebSocket.
        text: what was said.
    """

    def __init__(self, status: int, text: str = "") -> None:
        super().__init__(f"{status} {text}")
        self.status = status
        self.text = text


class Wire(Protocol):
    """Moves one message at a time, as it is."""

    async def send(self, frame: Frame) -> None:
        """Send one message.

        Raises:
            WireRefused: if the other side says at once that it does not take it.
        """
        ...

    async def receive(self) -> Frame:
        """The next message.

        Raises:
            EOFError: if there is none any more.
        """
        ...


class MemoryWire:
    """A wire to an agent in this process."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport
        self._waiting: list[Any] = []

    async def send(self, frame: Frame) -> None:
        """Send one message."""
        self._transport.write(json.dumps(frame).encode())

    async def receive(self) -> Frame:
        """The next message."""
        if not self._waiting:
            self._waiting = list(await self._transport.receive())
        if not self._waiting:
            raise EOFError
        frame: Frame = json.loads(self._waiting.pop(0))
        return frame


@asynccontextmanager
async def memory_wire(agent: Any) -> AsyncIterator[Wire]:
    """Serve an agent in memory."""
    ours, theirs = memory_transport_pair()
    runtime = AgentBuilder(agent).build(theirs)
    serving = OwnedTask("acp-conformance-agent")
    serving.start(runtime.serve)
    await ours.open()
    try:
        yield MemoryWire(ours)
    finally:
        await ours.aclose()
        runtime.stop()
        await serving.wait()


class ProcessWire:
    """A wire to an agent that reads lines from its input."""

    def __init__(self, process: anyio.abc.Process) -> None:
        if process.stdin is None or process.stdout is None:
            raise ValueError("The process must have pipes")
        self._input = process.stdin
        self._output = BufferedByteReceiveStream(process.stdout)

    async def send(self, frame: Frame) -> None:
        """Send one message."""
        await self._input.send(json.dumps(frame).encode() + b"\n")

    async def receive(self) -> Frame:
        """The next message; anything else on the output is an error."""
        try:
            line = await self._output.receive_until(b"\n", MAX_LINE)
        except (anyio.EndOfStream, anyio.IncompleteRead):
            raise EOFError from None
        frame: Frame = json.loads(line)
        return frame


@asynccontextmanager
async def process_wire(command: Sequence[str]) -> AsyncIterator[Wire]:
    """Start an agent; it is killed with what it started when the block ends."""
    async with await anyio.open_process(command, stdin=PIPE, stdout=PIPE, stderr=None) as process:
        try:
            yield ProcessWire(process)
        finally:
            process.kill()
