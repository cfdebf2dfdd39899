"""An editor waits for the start of an agent, so starting and answering a prompt loads nothing slow."""

import dataclasses
import importlib
import json
import re
import sys
from typing import Any

import pytest

SLOW = {"acp", "pydantic", "pydantic_settings", "fastapi", "starlette", "django", "pluggy"}
AGENT = ("-X", "importtime", "-m", "acp_integration", "stdio", "examples.agents:ProbeAgent")
IMPORT_LINE = re.compile(r"^import time:.*\|\s*([\w.]+)$", re.MULTILINE)


@pytest.fixture
def conversation(spawn, repo_root, tmp_path):
    """Hold one turn with the agent on stdio and give the answer to it and the names of the modules loaded by then."""
    with (tmp_path / "imports").open("w") as log:
        agent = spawn(sys.executable, *AGENT, "--app-dir", repo_root, stderr=log, cwd=tmp_path)

    def call(identifier: int, method: str, params: dict[str, Any]) -> dict[str, Any]:
        request = {"jsonrpc": "2.0", "id": identifier, "method": method, "params": params}
        agent.stdin.write(json.dumps(request).encode() + b"\n")
        agent.stdin.flush()
        answers = (json.loads(line) for line in agent.stdout)
        return next(answer["result"] for answer in answers if answer.get("id") == identifier)

    call(1, "initialize", {"protocolVersion": 1})
    session = call(2, "session/new", {"cwd": str(tmp_path), "mcpServers": []})
    prompt = [{"type": "text", "text": "hello"}]
    answer = call(3, "session/prompt", {"sessionId": session["sessionId"], "prompt": prompt})
    agent.stdin.close()
    agent.wait(30)
    return answer, set(IMPORT_LINE.findall((tmp_path / "imports").read_text()))


def test_a_prompt_is_answered_without_the_sdk_the_settings_library_or_a_framework(conversation):
    answer, modules = conversation
    assert answer["stopReason"] == "end_turn"
    assert "acp_integration.runtime" in modules
    assert not {module.partition(".")[0] for module in modules} & SLOW


def test_what_a_start_imports_defines_no_dataclass(conversation):
    """Each compiles its methods at every start, at forty times the cost of a struct."""
    _, modules = conversation
    assert not [
        f"{name}.{declared.__name__}"
        for name in sorted(modules)
        if name.startswith("acp_integration.")
        for declared in vars(importlib.import_module(name)).values()
        if isinstance(declared, type) and declared.__module__ == name and dataclasses.is_dataclass(declared)
    ]
