"""Other clients find their sessions again: acpx in a new process, the TypeScript SDK over HTTP and WebSocket."""

import json
import os
import shlex
import socket
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
import pytest

from tests.store.conftest import STDIO
from tests.store.test_kills import flat, updates_of

BOUND = 90


def wait_until(reached: Callable[[], bool], what: str) -> None:
    until = time.monotonic() + BOUND
    while not reached():
        assert time.monotonic() < until, what
        time.sleep(0.05)


def is_running(word: str) -> bool:
    for process in psutil.process_iter(["cmdline"]):
        command = process.info["cmdline"] or []
        if word in command and process.info["cmdline"][0] == sys.executable:
            return True
    return False


def test_acpx_goes_on_with_its_session_in_another_process(
    spawn: Any, peers: Path, peers_environ: dict[str, str], repo_root: Path, tmp_path: Path, database: Path
):
    trace = tmp_path / "trace"
    environ = {**peers_environ, "HOME": str(tmp_path), "ACP_AGENT_SESSION_STORE": f"sqlite:///{database}"}
    command = shlex.join([*STDIO, str(repo_root), "--trace", str(trace)])
    acpx = [peers / ".bin" / "acpx", "--agent", command, "--cwd", tmp_path, "--format", "json", "--ttl", "1"]

    def run(*words: str) -> str:
        process = spawn(*acpx, *words, cwd=tmp_path, env=environ)
        out, err = process.communicate(timeout=BOUND)
        assert process.returncode == 0, err.decode()
        # Its queue owner lives on for a second, and the agent's process with it.
        wait_until(lambda: not is_running(str(trace)), "the agent's process did not end")
        return out.decode()

    run("sessions", "new")
    run("prompt", "hello")
    assert "You first said: hello" in run("prompt", "first")
    received = [json.loads(line.split(" ", 2)[2]) for line in trace.read_text().splitlines() if " <- " in line]
    opened = [frame for frame in received if frame.get("method") in {"session/new", "session/load", "session/resume"}]
    assert [frame["method"] == "session/new" for frame in opened] == [True, *[False] * (len(opened) - 1)]
    prompted = {frame["params"]["sessionId"] for frame in received if frame.get("method") == "session/prompt"}
    assert {frame["params"]["sessionId"] for frame in opened[1:]} == prompted
    assert len(prompted) == 1


@pytest.fixture
def served(spawn: Any, free_port: Callable[[], int], repo_root: Path, database: Path) -> int:
    """The port of the agent's own listener, with the same store as the processes on stdio."""
    port = free_port()
    words = ["-m", "acp_integration", "listen", STDIO[4], "--app-dir", str(repo_root), "--port", str(port)]
    environ = {**os.environ, "ACP_AGENT_SESSION_STORE": f"sqlite:///{database}"}
    process = spawn(sys.executable, *words, env=environ)

    def listens() -> bool:
        assert process.poll() is None, process.stderr.read()
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", port)) == 0

    wait_until(listens, "the listener does not listen")
    return port


@pytest.fixture
def load(run_command: Any, peers: Path, peers_environ: dict[str, str], tmp_path: Path) -> Callable[..., Any]:
    """`load(target, session)` is what the official TypeScript client sees of a session that it loads."""
    (tmp_path / "node_modules").symlink_to(peers)  # where Node looks for what a script imports
    script = tmp_path / "npm_load.mjs"
    script.write_text((Path(__file__).resolve().parent / "npm_load.mjs").read_text())

    def run(target: dict[str, str], session: str) -> Any:
        words = [peers / ".bin" / "node", script, json.dumps(target), session]
        ended = run_command(*words, env=peers_environ, timeout=BOUND)
        assert ended.returncode == 0, ended.stderr
        return json.loads(ended.stdout.splitlines()[-1])

    return run


@pytest.mark.parametrize("scheme", ["http", "websocket"])
async def test_the_typescript_client_loads_over_the_network_what_a_process_on_stdio_kept(
    scheme: str, process: Callable[..., Any], served: int, load: Callable[..., Any]
):
    async with process() as peer:
        await peer.initialize()
        session = await peer.new_session()
        await peer.write(request := peer.prompt(session, "talk:120"))
        await peer.answer(request)
        said = flat(updates_of(peer))
    url = f"{'http' if scheme == 'http' else 'ws'}://127.0.0.1:{served}/acp"
    seen = load({scheme: url}, session)
    assert seen["loadSession"] is True
    assert seen["listed"] == [session]
    assert flat(seen["replayed"]) == [("user_message_chunk None", "talk:120"), *said]
    assert seen["answer"] == "You first said: talk:120"
