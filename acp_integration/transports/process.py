"""An agent that runs as a child process and speaks on its standard input and output."""

import asyncio
import logging
import signal
import threading
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

import anyio

from acp_integration.errors import AcpError, AgentExited, ConnectionClosed
from acp_integration.options import MIB
from acp_integration.transports.child import KILL, TERMINATE, Child, environment
from acp_integration.transports.lines import LineSplitter
from acp_integration.transports.pipes import Inbox, PipeReader, PipeWriter, call_soon
from acp_integration.transports.transport import Frame, Oversize, RequestId, TransportKind

logger = logging.getLogger(__name__)
stderr_logger = logging.getLogger(f"{__name__}.stderr")

EXIT_GRACE: Final = 2.0
"""How long an agent may take to end by itself once its input is closed, in seconds."""
TERMINATE_GRACE: Final = 5.0
"""How long it may take after it was asked to terminate, before it is killed, in seconds."""
STDERR_LINES: Final = 50
STDERR_LINE_BYTES: Final = 8192


class ProcessTransport:
    """Starts an agent in a process group of its own and exchanges one message a line with it.

    Its stderr is always read: line by line to the logger ``acp_integration.transports.process.stderr``, and the last
    lines are kept for errors. What it writes to stdout that is no JSON object is skipped and counted.

    Args:
        command: the program, found on the PATH of its own environment.
        args: its arguments; no shell ever sees them.
        env: variables added to the environment.
        cwd: the directory it starts in; None for the current one.
        inherit_environment: True for all of our variables, False for HOME, LOGNAME, PATH, SHELL, TERM and USER only, or
            the names of those to pass on.
        max_message_size: the longest line accepted, in bytes.
    """

    kind: TransportKind = "stdio"

    def __init__(
        self,
        command: str,
        args: Sequence[str] = (),
        *,
        env: Mapping[str, str] | None = None,
        cwd: str | None = None,
        inherit_environment: bool | Iterable[str] = True,
        max_message_size: int = 32 * MIB,
    ) -> None:
        self.command = command
        self.skipped_lines = 0
        self._args = tuple(args)
        self._env = dict(env or {})
        self._cwd = cwd
        self._inherit: bool | tuple[str, ...] = (
            inherit_environment if isinstance(inherit_environment, bool) else tuple(inherit_environment)
        )
        self._lines = LineSplitter(max_message_size)
        self._stderr_lines = LineSplitter(STDERR_LINE_BYTES)
        self._stderr: deque[str] = deque(maxlen=STDERR_LINES)
        self._child: Child | None = None
        self._threads: list[threading.Thread] = []
        self._closing = False

    def __repr__(self) -> str:
        return f"ProcessTransport({self.command!r}, {len(self._args)} args, env={sorted(self._env)}, cwd={self._cwd!r})"

    @property
    def pid(self) -> int | None:
        """The id of the agent's process, once it was started."""
        return None if self._child is None else self._child.pid

    @property
    def stderr_tail(self) -> str:
        """The last lines the agent wrote to stderr."""
        return "\n".join(self._stderr)

    @property
    def diagnosis(self) -> str:
        """What helps to understand why the agent does not answer: its command and the last lines of its stderr."""
        tail = self.stderr_tail
        return f"command {self.command}" + (
            f"; its last lines on stderr:\n{tail}" if tail else "; it wrote nothing to stderr"
        )

    async def open(self) -> None:
        """Start the process.

        Raises:
            ConnectionClosed: if it was started before, or the command cannot be started.
        """
        if self._child is not None or self._closing:
            raise ConnectionClosed("This transport started its agent already: make another one")
        child = Child((self.command, *self._args), environment(self._inherit, self._env), self._cwd)
        self._child = child
        self._loop = asyncio.get_running_loop()
        self._inbox = Inbox()
        self._exited, self._stderr_ended, self._stdout_ended = asyncio.Event(), asyncio.Event(), asyncio.Event()
        self._start_threads(child)
        self._closed = asyncio.Event()
        logger.info("Started the agent %s (process %d)", self.command, child.pid)

    def _start_threads(self, child: Child) -> None:
        stdin, stdout, stderr = child.pipes()
        name = f"acp-agent-{child.pid}"
        self._writer = PipeWriter(stdin, child.gone, f"{name}-stdin")
        readers = (
            PipeReader(stdout, child.gone, self._take_output, self._end_output, f"{name}-stdout"),
            PipeReader(stderr, child.gone, self._take_stderr, self._end_stderr, f"{name}-stderr"),
        )
        watcher = child.watch(lambda: call_soon(self._loop, self._exited.set))
        self._threads = [self._writer.thread, *(reader.thread for reader in readers), watcher]

    async def receive(self) -> Sequence[Frame]:
        """All frames that are here, once there is one; nothing after `aclose`.

        Raises:
            AgentExited: if the process has ended.
            ConnectionClosed: if it runs on but has closed its output.
        """
        frames = await self._inbox.take()
        if frames or self._closing:
            return frames
        raise await self._end()

    def write(self, frame: bytes, session: str | None = None, answers: RequestId | None = None) -> None:  # noqa: ARG002  # one stream
        """Queue one line."""
        self._writer.write(frame + b"\n")

    @property
    def congested(self) -> bool:
        """Whether the agent reads slower than we write."""
        return self._writer.congested

    async def drain(self) -> None:
        """Wait for the agent to read."""
        await self._writer.drain()

    async def wait_broken(self) -> None:
        """Wait until the agent reads no more."""
        await self._writer.broken.wait()

    async def aclose(self) -> None:
        """Close the agent's input, then end it and all it started: 2 s to exit, 5 s to terminate, then killed."""
        if self._child is None:
            self._closing = True
            return
        if self._closing:
            await self._closed.wait()
            return
        self._closing = True
        with anyio.CancelScope(shield=True):
            await self._shut_down(self._child)
        self._closed.set()

    async def _shut_down(self, child: Child) -> None:
        self._inbox.close()
        self._writer.close()
        for seconds, number in ((EXIT_GRACE, TERMINATE), (TERMINATE_GRACE, KILL)):
            if await self._exits_within(seconds):
                break
            logger.info("The agent %s (process %d) does not end: sending signal %d", self.command, child.pid, number)
            child.signal_group(number)
        if await self._exits_within(TERMINATE_GRACE):
            await child.end_group(TERMINATE_GRACE)
            await self._threads_end()
            child.reap()
            logger.info("The agent %s (process %d) has ended: %s", self.command, child.pid, _how(child.returncode))
        else:
            logger.error("The agent %s (process %d) cannot be killed", self.command, child.pid)

    async def _exits_within(self, seconds: float) -> bool:
        with anyio.move_on_after(seconds):
            await self._exited.wait()
        return self._exited.is_set()

    async def _threads_end(self) -> None:
        with anyio.move_on_after(TERMINATE_GRACE):
            for event in (self._stdout_ended, self._stderr_ended, self._writer.broken):
                await event.wait()
            for thread in self._threads:
                thread.join(1)  # each has done its last work already

    async def _end(self) -> AcpError:
        """Why the output ended."""
        with anyio.move_on_after(EXIT_GRACE):
            await self._exited.wait()
            await self._stderr_ended.wait()
        if not self._exited.is_set() or self._child is None:
            return ConnectionClosed(f"The agent closed its output but goes on running ({self.diagnosis})")
        text = f"The agent process {_how(self._child.returncode)} ({self.diagnosis})"
        return AgentExited(text, command=self.command, returncode=self._child.returncode, stderr_tail=self.stderr_tail)

    def _take_output(self, chunk: bytes) -> None:
        frames = [frame for frame in self._lines.feed(chunk) if self._is_message(frame)]
        if frames:
            self._inbox.put(frames, len(chunk))

    def _end_output(self) -> None:
        self._inbox.put([frame for frame in self._lines.finish() if self._is_message(frame)], 0)
        self._inbox.end()
        call_soon(self._loop, self._stdout_ended.set)

    def _is_message(self, frame: Frame) -> bool:
        if isinstance(frame, Oversize) or frame.lstrip().startswith(b"{"):
            return True
        if not frame.strip():
            return False
        level = logging.DEBUG if self.skipped_lines else logging.WARNING
        self.skipped_lines += 1
        logger.log(level, "The agent %s wrote something to stdout that is no protocol message; skipped", self.command)
        logger.debug("Skipped: %r", frame[:200])
        return False

    def _take_stderr(self, chunk: bytes) -> None:
        for line in self._stderr_lines.feed(chunk):
            self._keep_stderr(line)

    def _end_stderr(self) -> None:
        for line in self._stderr_lines.finish():
            self._keep_stderr(line)
        call_soon(self._loop, self._stderr_ended.set)

    def _keep_stderr(self, line: Frame) -> None:
        text = (
            f"(a line of more than {line.limit} bytes)"
            if isinstance(line, Oversize)
            else line.decode("utf-8", "replace")
        )
        self._stderr.append(text)
        stderr_logger.info("%s", text)


def _how(returncode: int | None) -> str:
    if returncode is None:
        return "exited"
    if returncode >= 0:
        return f"exited with code {returncode}"
    try:
        name = signal.Signals(-returncode).name
    except ValueError:
        name = "unknown"
    return f"exited with code {128 - returncode} (signal {-returncode}, {name})"
