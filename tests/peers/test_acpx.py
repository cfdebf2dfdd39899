"""The command-line client `acpx` drives the probe agent through every command that serves stdio, from any folder."""

import json
import shlex
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.schema import validate_frame

HERE = Path(__file__).resolve().parent
DJANGO_PROJECT = HERE / "django_probe"
BOUND = 90


def commands(root: Path) -> dict[str, list[str]]:
    python = sys.executable
    return {
        "core": [python, "-m", "acp_integration", "stdio", "examples.agents:ProbeAgent", "--app-dir", str(root)],
        "fastapi": [python, "-m", "acp_fastapi", "stdio", "examples.fastapi_app.main:app", "--app-dir", str(root)],
        "django": [python, "-m", "acp_django", "stdio", "--app-dir", str(DJANGO_PROJECT)],
        "manage": [python, str(DJANGO_PROJECT / "manage.py"), "acp_stdio"],
    }


class Acpx:
    """Runs `acpx exec` in a home and a working folder of its own."""

    def __init__(self, spawn: Any, peers: Path, environ: dict[str, str], command: list[str], folder: Path) -> None:
        self._spawn = spawn
        self._words = [peers / ".bin" / "acpx", "--agent", shlex.join(command), "--cwd", folder, "--format", "json"]
        self._environ = {**environ, "HOME": str(folder), "DATABASE": str(folder / "db.sqlite3")}
        self._environ.pop("DJANGO_SETTINGS_MODULE", None)
        self._folder = folder

    def start(self, *words: str) -> "subprocess.Popen[bytes]":
        process: subprocess.Popen[bytes] = self._spawn(*self._words, *words, cwd=self._folder, env=self._environ)
        return process

    def run(self, *words: str) -> list[dict[str, Any]]:
        process = self.start(*words)
        out, err = process.communicate(timeout=BOUND)
        assert process.returncode in (0, 5), err.decode()
        return [json.loads(line) for line in out.splitlines() if line.startswith(b"{")]


@pytest.fixture(params=["core", "fastapi", "django", "manage"])
def acpx(
    request: pytest.FixtureRequest,
    spawn: Any,
    peers: Path,
    peers_environ: dict[str, str],
    repo_root: Path,
    tmp_path: Path,
) -> Acpx:
    return Acpx(spawn, peers, peers_environ, commands(repo_root)[request.param], tmp_path)


@pytest.fixture
def core(spawn: Any, peers: Path, peers_environ: dict[str, str], repo_root: Path, tmp_path: Path) -> Acpx:
    """The core's command alone, for what does not depend on the command."""
    return Acpx(spawn, peers, peers_environ, commands(repo_root)["core"], tmp_path)


def stop_reasons(frames: list[dict[str, Any]]) -> list[str]:
    results = (frame.get("result") for frame in frames)
    return [result["stopReason"] for result in results if isinstance(result, dict) and "stopReason" in result]


def texts(frames: list[dict[str, Any]]) -> list[str]:
    updates = [frame["params"]["update"] for frame in frames if frame.get("method") == "session/update"]
    return [update["content"]["text"] for update in updates if isinstance(update.get("content"), dict)]


def test_a_prompt_ends_its_turn(acpx: Acpx) -> None:
    frames = acpx.run("--approve-all", "exec", "hello")
    assert stop_reasons(frames) == ["end_turn"]
    assert "".join(texts(frames)) == "echo: hello"


@pytest.mark.parametrize(("policy", "chosen"), [("--approve-all", "y"), ("--deny-all", "n")])
def test_permission_is_given_and_refused(acpx: Acpx, policy: str, chosen: str) -> None:
    frames = acpx.run(policy, "exec", "perm please")
    assert stop_reasons(frames) == ["end_turn"]
    assert texts(frames)[-1] == f"permission:selected:{chosen}"


@pytest.mark.parametrize(
    "text", ["readfile:{file}", "writefile:{file}", "term:echo hi", "plan", "image", "diff", "usage", "commands"]
)
def test_every_word_of_the_probe_ends_its_turn(core: Acpx, tmp_path: Path, text: str) -> None:
    file = tmp_path / "file.txt"
    file.write_text("the text of a file\n")
    frames = core.run("--approve-all", "exec", text.format(file=file))
    assert stop_reasons(frames) == ["end_turn"]
    for frame in frames:
        if frame.get("method") == "session/update":
            validate_frame(frame, "agent")


def test_an_interrupted_turn_is_answered_cancelled(acpx: Acpx) -> None:
    process = acpx.start("--approve-all", "exec", "wait_for_cancel please")
    assert process.stdout is not None
    frames = []
    for line in process.stdout:
        if line.startswith(b"{"):
            frames.append(json.loads(line))
            if texts(frames[-1:]):
                process.send_signal(signal.SIGINT)
                break
    rest, err = process.communicate(timeout=BOUND)
    frames += [json.loads(line) for line in rest.splitlines() if line.startswith(b"{")]
    assert stop_reasons(frames) == ["cancelled"], err.decode()
