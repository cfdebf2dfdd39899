"""What every test stands on: the loop in debug mode, nothing left behind, real processes that are always reaped."""

import asyncio
import logging
import os
import signal
import socket
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Generator, Iterator
from contextlib import AbstractContextManager, ExitStack
from inspect import iscoroutinefunction
from pathlib import Path
from threading import Timer
from typing import Any

import anyio
import pytest

from tests.processes import REAP_BOUND, end_group, reap

REPO_ROOT = Path(__file__).resolve().parent.parent


def pytest_configure() -> None:
    """Let the processes that tests start hear an interrupt, also when the suite was started in the background."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="session")
def anyio_backend() -> tuple[str, dict[str, Any]]:
    """The one loop that is supported, in debug mode."""
    return "asyncio", {"debug": True}


@pytest.fixture(scope="session")
def repo_root() -> Path:
    """The folder that holds the packages, ``examples`` and ``tests``."""
    return REPO_ROOT


@pytest.fixture(scope="session")
def peers() -> Path:
    """The folder of the npm packages: ``peers / "acpx"``, ``peers / ".bin" / "node"`` (Node 22)."""
    folder = REPO_ROOT / ".peers" / "node_modules"
    assert (folder / ".bin" / "node").exists(), "the npm peers are missing: run `make setup`"
    return folder


@pytest.fixture(scope="session")
def peers_environ(peers: Path) -> dict[str, str]:
    """The environment in which ``node`` is Node 22 and ``acpx`` is found."""
    return {**os.environ, "PATH": f"{peers / '.bin'}{os.pathsep}{os.environ['PATH']}"}


@pytest.fixture
def bound() -> Callable[[], AbstractContextManager[Any]]:
    """``with bound():`` fails what waits for more than five seconds; ``bound(30)`` for more than thirty."""

    def within(seconds: float = 5.0) -> AbstractContextManager[Any]:
        return anyio.fail_after(seconds)

    return within


def _tasks() -> set[asyncio.Task[Any]]:
    """The tasks of the running loop, without those in which the pytest plugin itself runs tests and fixtures."""
    return {task for task in asyncio.all_tasks() if not task.get_coro().__qualname__.startswith("TestRunner.")}


@pytest.fixture(autouse=True)
def leaves_no_task(request: pytest.FixtureRequest) -> None:
    """Check every async test, and not the others, for tasks that outlive it and its fixtures."""
    if iscoroutinefunction(request.node.obj):
        # Set up first, so torn down last: after the test's own fixtures.
        request.getfixturevalue("no_task_left")


@pytest.fixture
async def no_task_left(anyio_backend: tuple[str, dict[str, Any]]) -> AsyncIterator[None]:
    """Fail when a task that started since is still there; one that is just ending gets a moment for it."""
    before = _tasks()
    yield
    if started := _tasks() - before:
        _, left = await asyncio.wait(started, timeout=2)
        assert not left, f"tasks left behind: {left}"


@pytest.fixture
def free_port() -> Callable[[], int]:
    """Each call gives a TCP port of the loopback interface that nobody listens on."""

    def find() -> int:
        with socket.socket() as listener:
            listener.bind(("127.0.0.1", 0))
            return int(listener.getsockname()[1])

    return find


@pytest.fixture
def spawn() -> Iterator[Callable[..., subprocess.Popen[bytes]]]:
    """Start ``spawn(*command, lifetime=60, **popen_options)``, with pipes by default and a process group of its own.

    It is reaped at the end of the test, and killed when its lifetime (seconds) is over, so no read blocks for ever.
    """
    with ExitStack() as processes:

        def start(*command: str | Path, lifetime: float = REAP_BOUND, **options: Any) -> subprocess.Popen[bytes]:
            pipes = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
            process = subprocess.Popen([*map(str, command)], **{**pipes, **options}, start_new_session=True)
            watchdog = Timer(lifetime, end_group, [process.pid])
            watchdog.start()
            processes.callback(reap, process)
            processes.callback(watchdog.cancel)
            return process

        yield start


@pytest.fixture
def run_command(
    spawn: Callable[..., subprocess.Popen[bytes]],
) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Run ``run_command(*command, stdin="", timeout=60, **popen_options)`` to its end; its output is text."""

    def run(
        *command: str | Path, stdin: str = "", timeout: float = REAP_BOUND, **options: Any
    ) -> subprocess.CompletedProcess[str]:
        process = spawn(*command, lifetime=timeout + REAP_BOUND, **options)
        out, err = (output.decode() for output in process.communicate(stdin.encode(), timeout))
        return subprocess.CompletedProcess(process.args, process.returncode, out, err)

    return run


@pytest.fixture
def run_python(run_command: Callable[..., subprocess.CompletedProcess[str]]) -> Callable[..., Any]:
    """Run this interpreter as ``run_python("-m", "acp_integration", ..., **options)`` to its end."""

    def run(*arguments: str | Path, **options: Any) -> subprocess.CompletedProcess[str]:
        return run_command(sys.executable, *arguments, **options)

    return run


@pytest.fixture
async def open_process() -> AsyncIterator[Callable[..., Any]]:
    """The async twin of ``spawn``: ``await open_process(*command, **options)`` gives an ``anyio.abc.Process``."""
    opened: list[anyio.abc.Process] = []

    async def start(*command: str | Path, **options: Any) -> anyio.abc.Process:
        process = await anyio.open_process([*map(str, command)], **options, start_new_session=True)
        opened.append(process)
        return process

    yield start
    for process in reversed(opened):
        end_group(process.pid)
        with anyio.fail_after(REAP_BOUND):
            await process.aclose()


@pytest.fixture(autouse=True)
def loggers_as_they_were() -> Iterator[None]:
    """Take back what a command run in this process set for the log, so that tests may run in any order."""
    logger = logging.getLogger("acp_integration")
    level, propagate, disabled, handlers = logger.level, logger.propagate, logger.disabled, [*logger.handlers]
    yield
    logger.setLevel(level)
    logger.propagate, logger.disabled, logger.handlers = propagate, disabled, handlers


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Make every report one that a worker can send: half a character, which some tests log, is no UTF-8."""
    report = yield
    report.sections = [(title, text.encode("utf-8", "backslashreplace").decode()) for title, text in report.sections]
    return report
