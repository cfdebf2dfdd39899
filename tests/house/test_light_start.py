"""An editor waits for the start of an agent, so starting and answering a prompt loads nothing slow."""

import dataclasses
import importlib
import itertools
import json
import os
import re
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

Call = Callable[[str, dict[str, Any]], dict[str, Any]]
FRAMEWORKS = {"fastapi", "starlette", "django"}
SLOW = {"acp", "pydantic", "pydantic_settings", "pluggy"}
AGENT = ("acp_integration", "stdio", "examples.agents:ProbeAgent", "--app-dir", ".")
PROJECT = ("acp_django", "stdio", "--app-dir", "examples/django_project", "--settings", "project.settings")
SETTINGS = {"ACP_AGENT_REQUEST_TIMEOUT": "30s"}
IMPORT_LINE = re.compile(r"^import time:.*\|\s*([\w.]+)$", re.MULTILINE)


@pytest.fixture
def started(spawn, repo_root, tmp_path):
    """Start an agent that says what it imports; gives what calls it, and the modules loaded until it ended."""

    def start(command: Sequence[str], settings: dict[str, str]) -> tuple[Call, Callable[[], set[str]]]:
        imports = tmp_path / "imports"
        with imports.open("w") as log:
            words = (sys.executable, "-X", "importtime", "-m", *command)
            agent = spawn(*words, stderr=log, cwd=repo_root, env={**os.environ, **settings})
        identifiers = itertools.count(1)

        def call(method: str, params: dict[str, Any]) -> dict[str, Any]:
            request = {"jsonrpc": "2.0", "id": next(identifiers), "method": method, "params": params}
            agent.stdin.write(json.dumps(request).encode() + b"\n")
            agent.stdin.flush()
            answers = (json.loads(line) for line in agent.stdout)
            return next(answer["result"] for answer in answers if answer.get("id") == request["id"])

        def modules() -> set[str]:
            agent.stdin.close()
            agent.wait(30)
            return set(IMPORT_LINE.findall(imports.read_text()))

        return call, modules

    return start


def prompted(call: Call, tmp_path: Path) -> dict[str, Any]:
    call("initialize", {"protocolVersion": 1})
    session = call("session/new", {"cwd": str(tmp_path), "mcpServers": []})
    prompt = [{"type": "text", "text": "hello"}]
    return call("session/prompt", {"sessionId": session["sessionId"], "prompt": prompt})


@pytest.mark.parametrize("settings", [{}, SETTINGS], ids=["defaults", "settings"])
def test_a_prompt_is_answered_without_the_sdk_pydantic_or_a_framework(started, tmp_path, settings):
    call, modules = started(AGENT, settings)
    assert prompted(call, tmp_path)["stopReason"] == "end_turn"
    loaded = modules()
    assert "acp_integration.runtime" in loaded
    assert ("acp_integration.settings.sections" in loaded) == bool(settings)
    assert not {module.partition(".")[0] for module in loaded} & (SLOW | FRAMEWORKS)


def test_a_django_project_starts_without_the_sdk_pydantic_or_package_metadata(started):
    call, modules = started(PROJECT, {})
    assert call("initialize", {"protocolVersion": 1})["agentInfo"]["name"] == "helpdesk"
    loaded = modules()
    assert "acp_integration.settings.sections" in loaded
    assert "importlib.metadata._meta" not in loaded
    assert not {module.partition(".")[0] for module in loaded} & SLOW


@pytest.mark.parametrize("command", [AGENT, PROJECT], ids=["plain", "django"])
def test_what_a_start_imports_defines_no_dataclass(started, command):
    """Each compiles its methods at every start, at forty times the cost of a struct."""
    call, modules = started(command, SETTINGS)
    call("initialize", {"protocolVersion": 1})
    assert not [
        f"{name}.{declared.__name__}"
        for name in sorted(modules())
        if name.startswith("acp_integration.")
        for declared in vars(importlib.import_module(name)).values()
        if isinstance(declared, type) and declared.__module__ == name and dataclasses.is_dataclass(declared)
    ]
