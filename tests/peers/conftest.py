"""Servers that outlive one test, for peers that take their time to start."""

import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.processes import reap

START_BOUND = 60


@pytest.fixture(scope="module")
def uvicorn_port() -> Iterator[Callable[..., int]]:
    """`uvicorn_port(application, folder)` serves it until the module's tests are over, and gives its port."""
    with ExitStack() as servers:

        def serve(application: str, folder: Path, **environ: str) -> int:
            with socket.socket() as free:
                free.bind(("127.0.0.1", 0))
                port: int = free.getsockname()[1]
            command = [sys.executable, "-m", "uvicorn", application, "--port", str(port), "--log-level", "warning"]
            process = subprocess.Popen(command, cwd=folder, env={**environ} or None, start_new_session=True)
            servers.callback(reap, process)
            _wait_until_it_listens(port, process)
            return port

        yield serve


def _wait_until_it_listens(port: int, process: "subprocess.Popen[bytes]") -> None:
    until = time.monotonic() + START_BOUND
    while time.monotonic() < until:
        assert process.poll() is None, "the server ended"
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
        except OSError:
            time.sleep(0.05)
        else:
            return
    pytest.fail("the server does not listen")


@pytest.fixture(autouse=True)
def no_project_of_other_tests(monkeypatch: pytest.MonkeyPatch) -> None:
    """The commands find their Django project themselves, whatever was set up in this process before."""
    monkeypatch.delenv("DJANGO_SETTINGS_MODULE", raising=False)
