"""An editor waits for the start of an agent: what is imported by then is what that agent needs, and nothing else."""

import json
import re
import sys

import pytest

IMPORT_LINE = re.compile(r"^import time:.*\|\s*([\w.]+)$", re.MULTILINE)
NOT_NEEDED = {
    "acp",
    "acp_django",
    "acp_fastapi",
    "acp_integration.client",
    "acp_integration.endpoint",
    "acp_integration.settings",
    "acp_integration.store.durable",
    "acp_integration.store.tables",
    "acp_integration.testing",
    "django",
    "email",
    "fastapi",
    "httpx2",
    "hypercorn",
    "importlib.metadata",
    "pluggy",
    "pydantic",
    "pydantic_settings",
    "secrets",
    "sqlite3",
    "starlette",
    "tomllib",
    "websockets",
    "zipfile",
}


@pytest.fixture
def modules(spawn, repo_root, tmp_path):
    """The names of the modules that are imported when an agent without settings has answered a prompt on stdio."""
    target = tmp_path / "target"
    target.mkdir()
    (target / "agent.py").write_text((repo_root / "examples" / "agents.py").read_text())
    command = ("-X", "importtime", "-m", "acp_integration", "stdio", "agent:ProbeAgent", "--app-dir", target)
    with (tmp_path / "imports").open("w") as log:
        agent = spawn(sys.executable, *command, stderr=log, cwd=tmp_path)
    calls = [
        ("initialize", {"protocolVersion": 1}),
        ("session/new", {"cwd": str(tmp_path), "mcpServers": []}),
        ("session/prompt", {"prompt": [{"type": "text", "text": "hello"}]}),
    ]
    session = None
    for identifier, (method, params) in enumerate(calls):
        named = params if session is None else {**params, "sessionId": session}
        request = {"jsonrpc": "2.0", "id": identifier, "method": method, "params": named}
        agent.stdin.write(json.dumps(request).encode() + b"\n")
        agent.stdin.flush()
        answers = (json.loads(line) for line in agent.stdout)
        result = next(answer["result"] for answer in answers if answer.get("id") == identifier)
        session = result.get("sessionId", session)
    assert result["stopReason"] == "end_turn"
    agent.stdin.close()
    agent.wait(30)
    return set(IMPORT_LINE.findall((tmp_path / "imports").read_text()))


def test_a_prompt_is_answered_with_nothing_imported_that_it_does_not_need(modules):
    assert "acp_integration.runtime" in modules
    assert not modules & NOT_NEEDED


def test_only_the_command_that_was_given_is_imported(modules):
    commands = {"ask", "chat", "inspect", "editor", "listen", "doctor"}
    assert "acp_integration.cli.serving" in modules
    assert not modules & {f"acp_integration.cli.{name}" for name in commands - {"editor"}}
