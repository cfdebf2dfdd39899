"""Processes under measurement: started in a group of their own, their processor time and memory read, always ended."""

import os
import signal
import socket
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path
from typing import IO

ROOT = Path(__file__).resolve().parent.parent
START_SECONDS = 60


class Process:
    """One child process; a context manager that leaves nothing behind."""

    def __init__(
        self, command: Sequence[str], environ: dict[str, str], *, pipes: bool = True, log: IO[bytes] | None = None
    ) -> None:
        self.spawned = time.perf_counter()
        pipe = subprocess.PIPE if pipes else subprocess.DEVNULL
        self._child = subprocess.Popen(
            command,
            stdin=pipe,
            stdout=pipe,
            stderr=log or subprocess.DEVNULL,
            cwd=ROOT,
            env=environ,
            bufsize=0,
            start_new_session=True,
        )

    def __enter__(self) -> "Process":
        return self

    def __exit__(self, *_: object) -> None:
        self.end()

    @property
    def stdin(self) -> IO[bytes]:
        assert self._child.stdin is not None
        return self._child.stdin

    @property
    def stdout(self) -> IO[bytes]:
        assert self._child.stdout is not None
        return self._child.stdout

    def cpu_seconds(self) -> float:
        """Processor time of all its threads, exact to the nanosecond: the kernel's clock of a process has this id."""
        return time.clock_gettime((~self._child.pid << 3) | 2)

    def peak_megabytes(self) -> float:
        status = Path(f"/proc/{self._child.pid}/status").read_text()
        line = next(line for line in status.splitlines() if line.startswith("VmHWM:"))
        return int(line.split()[1]) / 1024

    def wait_until_it_listens(self, port: int) -> None:
        until = time.monotonic() + START_SECONDS
        while time.monotonic() < until:
            assert self._child.poll() is None, "the server ended"
            try:
                socket.create_connection(("127.0.0.1", port), 1).close()
            except OSError:
                time.sleep(0.05)
            else:
                return
        raise TimeoutError("the server does not listen")

    def end(self) -> None:
        """Close its input, which ends an agent; end it by force if that does not."""
        if self._child.stdin is not None:
            self._child.stdin.close()
        else:
            self._child.send_signal(signal.SIGINT)  # as Ctrl-C: a profiler writes what it has
        try:
            self._child.wait(10)
        except subprocess.TimeoutExpired:
            os.killpg(self._child.pid, signal.SIGKILL)
            self._child.wait()
        if self._child.stdout is not None:
            self._child.stdout.close()


def free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port: int = free.getsockname()[1]
        return port
