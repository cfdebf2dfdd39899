import json
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.cli.terminals import Screen

INITIALIZE = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"protocolVersion": 1}}


@pytest.fixture
def command(run_python, repo_root, tmp_path) -> Callable[..., Any]:
    """Run ``command(name, *words)`` on the examples, from an empty folder."""

    def run(name: str, *words: str | Path, app_dir: Path = repo_root, **options: Any) -> Any:
        arguments = ("-P", "-m", "acp_integration", name, *words, "--app-dir", app_dir)
        return run_python(*arguments, **{"cwd": tmp_path, **options})

    return run


@pytest.fixture
def handshake(run_command) -> Callable[..., Any]:
    """Start ``handshake(*command)`` with nothing but its input, and give the answer to `initialize`."""

    def hold(*command: str, **options: Any) -> Any:
        done = run_command(*command, stdin=f"{json.dumps(INITIALIZE)}\n", env={"PATH": ""}, **options)
        assert done.returncode == 0, done.stderr
        (answer,) = [json.loads(line) for line in done.stdout.splitlines()]
        assert answer["id"] == 1
        return answer["result"]

    return hold


@pytest.fixture
def screen(spawn, repo_root, tmp_path) -> Iterator[Callable[..., Screen]]:
    """Run ``screen(name, *words)`` on the examples with a terminal as its standard streams."""
    opened: list[Screen] = []

    def start(*words: str) -> Screen:
        arguments = (sys.executable, "-P", "-m", "acp_integration", words[0], "--app-dir", repo_root, *words[1:])
        found = Screen(lambda **streams: spawn(*arguments, cwd=tmp_path, **streams, env={**os.environ, "TERM": "dumb"}))
        opened.append(found)
        return found

    yield start
    for one in opened:
        one.close()


@pytest.fixture(autouse=True)
def no_project_of_other_tests(monkeypatch: pytest.MonkeyPatch) -> None:
    """The commands find their Django project themselves, whatever was set up in this process before."""
    monkeypatch.delenv("DJANGO_SETTINGS_MODULE", raising=False)
