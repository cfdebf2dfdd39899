"""Importing the package costs nothing, needs no project, and leaves the agent for when it is needed."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

LOADED = "import json, sys; print(json.dumps(sorted(sys.modules)))"
MODULES = ["apps", "asgi", "auth", "checks", "client", "conf", "discovery", "executor", "program", "signals", "views"]


@pytest.fixture
def modules_after(run_python: Any) -> Any:
    """The modules that some code loads in a process without a project."""

    def run(code: str, **options: Any) -> set[str]:
        environment = {name: value for name, value in os.environ.items() if name != "DJANGO_SETTINGS_MODULE"}
        done = run_python("-c", f"{code}\n{LOADED}", env=environment | options.pop("env", {}), **options)
        assert done.returncode == 0, done.stderr
        return set(json.loads(done.stdout.splitlines()[-1]))

    return run


def test_importing_the_package_loads_nothing_else(modules_after: Any) -> None:
    assert modules_after("import acp_django") - modules_after("") == {"acp_django"}


@pytest.mark.parametrize("module", MODULES)
def test_every_module_is_importable_before_django_is_set_up(modules_after: Any, module: str) -> None:
    modules_after(f"import acp_django.{module}")


def test_a_process_that_serves_no_agent_loads_next_to_nothing(modules_after: Any, project: Path) -> None:
    code = f"import sys; sys.path.insert(0, {str(project)!r}); import django; django.setup()"
    loaded = modules_after(code, env={"DJANGO_SETTINGS_MODULE": "probe_project.settings"})
    ours = {name for name in loaded if name.startswith(("acp_django", "acp_integration"))}
    assert ours == {"acp_django", "acp_django.apps"}
    assert not loaded & {"acp", "pydantic", "msgspec", "anyio", "tickets.acp_agents"}


def test_serving_loads_neither_the_sdk_nor_the_settings_library_without_need(modules_after: Any, project: Path) -> None:
    code = (
        f"import sys; sys.path.insert(0, {str(project)!r}); import django; django.setup()\n"
        "from acp_django.serving import serving; serving()"
    )
    loaded = modules_after(code, env={"DJANGO_SETTINGS_MODULE": "probe_project.settings"})
    assert "tickets.acp_agents" in loaded
    assert not loaded & {"acp", "pydantic", "rest_framework", "fastapi"}
