"""A child process with its own process group: started, watched, and ended with everything it started itself."""

import os
import shutil
import signal
import subprocess
import sys
import threading
import weakref
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO, Final

import anyio

from acp_integration.errors import ConnectionClosed

MINIMAL_ENVIRONMENT: Final = ("HOME", "LOGNAME", "PATH", "SHELL", "TERM", "USER")
LISTED: Final = sys.platform == "linux"
WINDOWS: Final = sys.platform == "win32"
TERMINATE: Final = int(signal.SIGTERM)
KILL: Final = int(getattr(signal, "SIGKILL", signal.SIGTERM))


class Child:
    """One started process; its exit is noticed without reaping it, so that its process group stays its own."""

    def __init__(self, command: Sequence[str], environment: Mapping[str, str], cwd: str | None) -> None:
        self._process = _start(command, environment, cwd)
        self.pid = self._process.pid
        self.returncode: int | None = None
        self.gone, self._exit_writer = os.pipe()
        self._on_exit: Callable[[], None] | None = None
        self._at_exit = weakref.finalize(self, _kill_group, self.pid, os.getpid())

    def watch(self, on_exit: Callable[[], None]) -> threading.Thread:
        """Start the thread that waits for the exit; `gone` becomes readable then, and the callback is called in it."""
        self._on_exit = on_exit
        thread = threading.Thread(target=self._wait, name=f"acp-agent-exit-{self.pid}", daemon=True)
        thread.start()
        return thread

    def pipe(self, stream: IO[bytes] | None) -> int:
        """A file descriptor of our own for one of the child's pipes."""
        assert stream is not None  # every stream is a pipe
        with stream:
            return os.dup(stream.fileno())

    def pipes(self) -> tuple[int, int, int]:
        """The ends of stdin, stdout and stderr on our side; the caller closes them."""
        return self.pipe(self._process.stdin), self.pipe(self._process.stdout), self.pipe(self._process.stderr)

    def signal_group(self, number: int) -> None:
        """Send a signal to the child and to everything it started."""
        with suppress(ProcessLookupError, PermissionError):
            if WINDOWS:
                self._end_windows_tree(number)
            else:
                os.killpg(self.pid, number)

    async def end_group(self, grace: float) -> None:
        """After the child's exit: ask what it left behind to end, for at most `grace` seconds, then kill it."""
        if group_members(self.pid):
            self.signal_group(TERMINATE)
            with anyio.move_on_after(grace):
                # Nobody tells a process about the end of its grandchildren.
                while group_members(self.pid):  # noqa: ASYNC110
                    await anyio.sleep(0.02)
        self.signal_group(KILL)

    def reap(self) -> None:
        """Forget the child; it must have exited."""
        self._at_exit.detach()
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(timeout=1)
        os.close(self.gone)

    def _wait(self) -> None:
        self.returncode = _wait_without_reaping(self._process)
        os.close(self._exit_writer)
        if self._on_exit is not None:
            self._on_exit()

    def _end_windows_tree(self, number: int) -> None:
        if number == KILL:
            taskkill = Path(os.environ.get("SYSTEMROOT", r"C:\Windows")) / "System32" / "taskkill.exe"
            subprocess.run([taskkill, "/F", "/T", "/PID", str(self.pid)], capture_output=True, check=False)  # noqa: S603
        else:
            self._process.terminate()


def _start(command: Sequence[str], environment: Mapping[str, str], cwd: str | None) -> subprocess.Popen[bytes]:
    if cwd is not None and not Path(cwd).is_dir():
        raise ConnectionClosed(f"The agent cannot start in {cwd}: there is no such directory")
    program = resolve_command(command[0], environment.get("PATH"))
    try:
        return subprocess.Popen(  # noqa: S603  # the application's own settings name the program
            [program, *command[1:]],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            bufsize=0,
            env=dict(environment),
            cwd=cwd,
            start_new_session=True,
        )
    except OSError as error:
        raise ConnectionClosed(f"The agent's command {command[0]} cannot be started: {error.strerror}") from error


def resolve_command(
    command: str, search_path: str | None, extensions: str | None = None, *, windows: bool = WINDOWS
) -> str:
    """Find the file a command stands for; on Windows also scripts such as ``npx.cmd``.

    Args:
        command: a name, or a path.
        search_path: the folders to look in, as in the PATH variable.
        extensions: the file endings that can be run, as in Windows' PATHEXT variable.
        windows: whether to look as Windows does.

    Raises:
        ConnectionClosed: if there is no such command, or it cannot be executed.
    """
    endings = (extensions or os.environ.get("PATHEXT", ".COM;.EXE;.BAT;.CMD")).split(";") if windows else []
    for candidate in (command, *(command + ending.lower() for ending in endings)):
        if found := shutil.which(candidate, path=search_path):
            return found
    if Path(command).is_file():
        raise ConnectionClosed(f"The agent's command {command} is not executable: check its permissions")
    raise ConnectionClosed(f"The agent's command {command} was not found: install it, or name it with its full path")


def environment(inherit: bool | Iterable[str], added: Mapping[str, str]) -> dict[str, str]:
    """The variables of a child process: all of ours, a minimal set, or the named ones; then the added ones."""
    if inherit is True:
        return {**os.environ, **added}
    names = MINIMAL_ENVIRONMENT if inherit is False else inherit
    return {**{name: os.environ[name] for name in names if name in os.environ}, **added}


def _wait_without_reaping(process: subprocess.Popen[bytes]) -> int | None:
    if not hasattr(os, "waitid"):
        return process.wait()
    try:
        result = os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
    except ChildProcessError:  # somebody else reaped it
        return process.poll()
    if result is None:
        return None
    return result.si_status if result.si_code == os.CLD_EXITED else -result.si_status


def _kill_group(group: int, starter: int) -> None:
    """At the end of an interpreter that did not close its agents; one that was forked from it leaves them alone."""
    if os.getpid() == starter and not WINDOWS:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(group, KILL)


def group_members(group: int) -> list[int]:
    """The live processes of a process group; nothing where the system does not list them."""
    members = []
    for process in Path("/proc").iterdir() if LISTED else ():
        with suppress(OSError, ValueError):
            state, _, pgrp = (process / "stat").read_text(errors="replace").rpartition(")")[2].split()[:3]
            if int(pgrp) == group and state != "Z":
                members.append(int(process.name))
    return members
