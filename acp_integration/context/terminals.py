"""Commands that run in the client's terminals; every terminal is given back, whatever happens."""

import logging
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any

import anyio
import msgspec

from acp_integration.connection import Pending
from acp_integration.context.capabilities import require
from acp_integration.errors import ConnectionClosed, TurnError
from acp_integration.jsonrpc import encode
from acp_integration.requests import ask
from acp_integration.turns import Call
from acp_integration.wire import methods
from acp_integration.wire.decoding import decode_result

logger = logging.getLogger(__name__)


class ExitStatus(msgspec.Struct, frozen=True):
    """How a command ended: with an exit code, or by a signal."""

    exit_code: int | None = None
    signal: str | None = None


class Output(msgspec.Struct, frozen=True):
    """What a command has written.

    Attributes:
        text: the output so far.
        truncated: whether the beginning was dropped, for the byte limit.
        exit_status: how the command ended; None while it runs.
    """

    text: str
    truncated: bool = False
    exit_status: ExitStatus | None = None

    @property
    def succeeded(self) -> bool:
        """Whether the command ended with exit code 0."""
        return self.exit_status is not None and self.exit_status.exit_code == 0


class Terminal:
    """A command that runs in a terminal of the client."""

    __slots__ = ("_call", "_released", "id")

    def __init__(self, call: Call, identifier: str) -> None:
        self.id = identifier
        self._call = call
        self._released = False
        call.before_answer(self.release)

    async def output(self) -> Output:
        """What the command has written so far."""
        answer = decode_result(methods.TERMINAL_OUTPUT, await self._ask(methods.TERMINAL_OUTPUT))
        status = answer.exit_status
        ended = None if status is None else ExitStatus(status.exit_code, status.signal)
        return Output(answer.output, answer.truncated, ended)

    async def wait_for_exit(self) -> ExitStatus:
        """Wait, for as long as the turn lives, until the command has ended."""
        raw = await ask(self._call, methods.TERMINAL_WAIT_FOR_EXIT, self._params(), timeout=None)
        answer = decode_result(methods.TERMINAL_WAIT_FOR_EXIT, raw)
        return ExitStatus(answer.exit_code, answer.signal)

    async def kill(self) -> None:
        """End the command; its output stays readable."""
        await self._ask(methods.TERMINAL_KILL)

    def release(self) -> None:
        """Give the terminal back, once: nobody waits for the answer, so that a cancelled turn can do it too."""
        if not self._released:
            self._released = True
            _release(self._call, self.id)

    async def _ask(self, method: str) -> msgspec.Raw:
        return await ask(self._call, method, self._params(), timeout=self._call.peer.options.request_timeout)

    def _params(self) -> bytes:
        return encode({"sessionId": self._call.session_id, "terminalId": self.id})


class Command(msgspec.Struct, frozen=True):
    """What to run, and how."""

    program: str
    arguments: Sequence[str]
    cwd: str | None
    env: Mapping[str, str] | None
    output_byte_limit: int | None

    def to_wire(self) -> dict[str, Any]:
        """The params of `terminal/create`, without the session."""
        optional = {"cwd": self.cwd, "outputByteLimit": self.output_byte_limit}
        env = [{"name": name, "value": value} for name, value in (self.env or {}).items()]
        fields = {"command": self.program, "args": list(self.arguments), "env": env, **optional}
        return {name: value for name, value in fields.items() if value is not None}


@asynccontextmanager
async def terminal(call: Call, command: Command) -> AsyncIterator[Terminal]:
    """Run a command in a terminal that is given back at the end of the block."""
    require(call.capabilities, "terminal")
    params = encode({"sessionId": call.session_id, **command.to_wire()})
    timeout = call.peer.options.request_timeout
    raw = await ask(call, methods.TERMINAL_CREATE, params, timeout=timeout, late=_release_late(call))
    opened = Terminal(call, decode_result(methods.TERMINAL_CREATE, raw).terminal_id)
    try:
        yield opened
    finally:
        opened.release()


async def execute(call: Call, command: Command, timeout: float | None) -> Output:
    """Run a command to its end, or to its time limit."""
    async with terminal(call, command) as opened:
        with anyio.move_on_after(timeout) as limit:
            await opened.wait_for_exit()
        if limit.cancelled_caught:
            await opened.kill()
            raise TurnError(f"The command {command.program} did not end within {timeout:g} s and was killed")
        return await opened.output()


def _release_late(call: Call) -> Callable[[msgspec.Raw], None]:
    """The client may open a terminal that nobody waits for any more: it is given back unseen."""
    return lambda raw: _release(call, decode_result(methods.TERMINAL_CREATE, raw).terminal_id)


def _release(call: Call, identifier: str) -> None:
    params = encode({"sessionId": call.session_id, "terminalId": identifier})
    try:
        pending = call.connection.request(methods.TERMINAL_RELEASE, params, call.session_id)
    except ConnectionClosed:
        return
    pending.future.add_done_callback(lambda _: _note_release(pending))


def _note_release(pending: Pending) -> None:
    if not pending.future.cancelled() and pending.future.exception() is not None:
        logger.debug("The client did not release a terminal", exc_info=pending.future.exception())
