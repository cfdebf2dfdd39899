"""A stdio process ends when its client does, whatever it is doing, and its application is closed first."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

LIFESPAN_PROGRAM = """
import sys
from argparse import Namespace
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
from acp_integration.assembly import AgentBuilder
from acp_integration.cli.program import Served
from acp_integration.cli.serving import serve_stdio
from acp_integration.transports.guard import guard_standard_streams

streams = guard_standard_streams()
sys.path.insert(0, sys.argv[1])
import rule_agents

@asynccontextmanager
async def application():
    builder = AgentBuilder(getattr(rule_agents, sys.argv[2]))
    try:
        yield Served(builder.build_factory(), builder.options)
    finally:
        Path(sys.argv[3]).write_text("closed")
        if sys.argv[4:] == ["hang"]:
            await anyio.sleep_forever()

sys.exit(serve_stdio(streams, application))
"""
PARENT = """
import subprocess, sys
child = subprocess.Popen(sys.argv[1:], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
print(child.pid, flush=True)
child.stdin.write(sys.stdin.buffer.readline()); child.stdin.flush()
sys.stdout.buffer.write(child.stdout.readline()); sys.stdout.flush()
child.stdin.write(sys.stdin.buffer.readline()); child.stdin.flush()
sys.stdout.buffer.write(child.stdout.readline()); sys.stdout.flush()
child.stdin.write(sys.stdin.buffer.readline()); child.stdin.flush()
sys.stdout.buffer.write(child.stdout.readline()); sys.stdout.flush()
child.wait()
"""
HERE = Path(__file__).resolve().parent
TURNS = {"RuleAgent": "wait", "SyncAgent": "sleep:30"}


class Serving:
    """A process in the middle of a long turn."""

    def __init__(self, process: "subprocess.Popen[bytes]", agent: str, closed: Path) -> None:
        self.process = process
        self.closed = closed
        self.pid = process.pid
        self._talk(agent)

    def _talk(self, agent: str) -> None:
        self.call(1, "initialize", {"protocolVersion": 1})
        session = self.call(2, "session/new", {"cwd": "/x", "mcpServers": []})["result"]["sessionId"]
        content = [{"type": "text", "text": TURNS[agent]}]
        assert self.call(3, "session/prompt", {"sessionId": session, "prompt": content})["method"] == "session/update"

    def call(self, identifier: int, method: str, params: Any) -> Any:
        stdin, stdout = self.process.stdin, self.process.stdout
        assert stdin is not None
        assert stdout is not None
        stdin.write(
            json.dumps({"jsonrpc": "2.0", "id": identifier, "method": method, "params": params}).encode() + b"\n"
        )
        stdin.flush()
        return json.loads(stdout.readline())


@pytest.fixture(params=sorted(TURNS))
def agent(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    return name


@pytest.fixture
def command(tmp_path: Path, agent: str) -> list[str]:
    (tmp_path / "program.py").write_text(LIFESPAN_PROGRAM)
    return [sys.executable, str(tmp_path / "program.py"), str(HERE), agent, str(tmp_path / "closed")]


@pytest.fixture
def serving(spawn: Callable[..., "subprocess.Popen[bytes]"], command: list[str], agent: str, tmp_path: Path) -> Serving:
    return Serving(spawn(*command), agent, tmp_path / "closed")


def test_a_closed_reader_at_the_end_of_input_ends_the_process(serving: Serving) -> None:
    assert serving.process.stdin is not None
    assert serving.process.stdout is not None
    ended = time.monotonic()
    serving.process.stdout.close()
    serving.process.stdin.close()
    assert serving.process.wait(10) == 0
    assert time.monotonic() - ended < 3
    assert serving.closed.read_text() == "closed"


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 0), (signal.SIGINT, 130)])
def test_one_signal_ends_the_process_without_a_traceback(serving: Serving, number: int, code: int) -> None:
    sent = time.monotonic()
    serving.process.send_signal(number)
    _, log = serving.process.communicate(timeout=15)
    assert serving.process.returncode == code, log
    assert time.monotonic() - sent < 3 + 5, "the abort timeout is 5 s"
    assert b"Traceback" not in log
    assert serving.closed.read_text() == "closed"


def test_a_second_signal_ends_a_clean_up_that_hangs(spawn: Any, tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(LIFESPAN_PROGRAM)
    process = spawn(sys.executable, tmp_path / "program.py", HERE, "RuleAgent", tmp_path / "closed", "hang")
    Serving(process, "RuleAgent", tmp_path / "closed")
    process.send_signal(signal.SIGTERM)
    until = time.monotonic() + 10
    while not (tmp_path / "closed").exists() and time.monotonic() < until:
        time.sleep(0.02)
    process.send_signal(signal.SIGTERM)
    assert process.wait(10) == 128 + signal.SIGTERM


def test_a_killed_parent_takes_the_agent_with_it(spawn: Any, command: list[str], agent: str, tmp_path: Path) -> None:
    parent = spawn(sys.executable, "-c", PARENT, *command)
    pid = int(parent.stdout.readline())
    Serving(parent, agent, tmp_path / "closed")
    parent.send_signal(signal.SIGKILL)
    parent.wait(5)
    killed = time.monotonic()
    while process_lives(pid) and time.monotonic() - killed < 10:
        time.sleep(0.02)
    assert time.monotonic() - killed < 3
    assert (tmp_path / "closed").read_text() == "closed"


def process_lives(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return "Z" not in Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2][:3]


def test_an_agent_that_waits_uses_no_processor(spawn: Any, tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(LIFESPAN_PROGRAM)
    process = spawn(sys.executable, tmp_path / "program.py", HERE, "RuleAgent", tmp_path / "closed")
    Serving(process, "RuleAgent", tmp_path / "closed")
    process.stdin.close()
    before = processor_ticks(process.pid)
    with pytest.raises(subprocess.TimeoutExpired):
        process.wait(1)
    assert processor_ticks(process.pid) - before <= 5, "it spins while it waits for the turn"


def processor_ticks(pid: int) -> int:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return int(fields[11]) + int(fields[12])
