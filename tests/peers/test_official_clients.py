"""The official SDKs' own clients, in both languages, drive the probe agent on every transport."""

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.schema import validate_log

HERE = Path(__file__).resolve().parent
BOUND = 90
SEEN = {
    "protocolVersion": 1,
    "distinct": True,
    "stopReasons": ["end_turn", "end_turn", "end_turn", "end_turn", "cancelled"],
    "chunks": 50,
    "echo": "echo: hello",
    "permissions": ["permission:selected:y", "permission:selected:n"],
}


@pytest.fixture
def stdio_target(repo_root: Path) -> dict[str, Any]:
    command = ["-m", "acp_integration", "stdio", "examples.agents:ProbeAgent", "--app-dir", str(repo_root)]
    return {"stdio": [sys.executable, *command]}


@pytest.fixture(scope="module")
def served_port(uvicorn_port: Callable[..., int], repo_root: Path) -> int:
    return uvicorn_port("examples.fastapi_app.main:app", repo_root)


@pytest.fixture(params=["stdio", "http", "websocket"])
def target(request: pytest.FixtureRequest) -> dict[str, Any]:
    if request.param == "stdio":
        return request.getfixturevalue("stdio_target")
    port = request.getfixturevalue("served_port")
    scheme = "http" if request.param == "http" else "ws"
    return {request.param: f"{scheme}://127.0.0.1:{port}/acp"}


def test_the_official_typescript_client(
    target: dict[str, Any], run_command: Any, peers: Path, peers_environ: dict[str, str], module_link: Path
) -> None:
    ended = run_command(peers / ".bin" / "node", module_link, json.dumps(target), env=peers_environ, timeout=BOUND)
    assert ended.returncode == 0, ended.stderr
    seen = json.loads(ended.stdout.splitlines()[-1])
    wire = seen.pop("wire")
    assert seen == SEEN
    assert validate_log((one["from"], one["message"]) for one in wire).unanswered() == []


@pytest.mark.sdk
def test_the_official_python_client(target: dict[str, Any], run_python: Any) -> None:
    ended = run_python(HERE / "python_client.py", json.dumps(target), timeout=BOUND)
    assert ended.returncode == 0, ended.stderr
    assert json.loads(ended.stdout.splitlines()[-1]) == SEEN


@pytest.fixture
def module_link(peers: Path, tmp_path: Path) -> Path:
    """The script where Node finds the packages it imports."""
    (tmp_path / "node_modules").symlink_to(peers)
    script = tmp_path / "npm_client.mjs"
    script.write_text((HERE / "npm_client.mjs").read_text())
    return script
