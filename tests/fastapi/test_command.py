"""`python -m acp_fastapi`: the same application, its lifespan running, its agent on standard input and output."""

import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest

APPLICATION = """
import os, subprocess, sys
from contextlib import asynccontextmanager
from typing import Annotated

from fastapi import Depends, FastAPI, Request
from acp_fastapi import AcpFastAPI
from acp_integration import PromptContext, acp_agent, on

print("printed at import")
os.write(1, b"written to descriptor 1\\n")
subprocess.run(["echo", "said by a child"])

@asynccontextmanager
async def lifespan(app):
    print("app up")
    yield {"pool": "shared"}
    print("app down", file=sys.stderr, flush=True)

def pool(request: Request) -> str:
    return request.state.pool

@acp_agent(name="shop")
class ShopAgent:
    @on.prompt
    async def answer(self, turn: PromptContext, pool: Annotated[str, Depends(pool)], request: Request) -> str:
        return f"{pool} {request.app.title} {turn.user}"

@acp_agent(name="second")
class SecondAgent:
    @on.prompt
    async def answer(self, turn: PromptContext) -> str:
        return "second"

agents = AcpFastAPI(ShopAgent)
app = FastAPI(lifespan=lifespan, title="shop")
app.include_router(agents.router)

def create_app():
    return app

class Wrapped:
    async def __call__(self, scope, receive, send):
        await app(scope, receive, send)

wrapped = Wrapped()
"""

CONVERSATION = [
    {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"protocolVersion": 1}},
    {"jsonrpc": "2.0", "id": 2, "method": "session/new", "params": {"cwd": "/tmp", "mcpServers": []}},
]


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "main.py").write_text(APPLICATION)
    return folder


@pytest.fixture
def command(run_python: Any, project: Path) -> Any:
    def run(name: str, *words: str, **options: Any) -> Any:
        return run_python("-P", "-m", "acp_fastapi", name, "--app-dir", str(project), *words, **options)

    return run


@pytest.mark.parametrize("target", ["main:app", "main:agents", "main:create_app", "main:wrapped", "main"])
def test_an_agent_is_found_by_its_app_or_by_itself(target, command, tmp_path):
    done = command("ask", target, "hi", cwd=tmp_path)
    assert done.stdout.splitlines()[-1] == "shared shop None", done.stderr
    assert "app down" in done.stderr
    assert done.returncode == 0


def test_every_line_on_standard_output_is_a_message(command, tmp_path):
    done = command(
        "stdio", "main:app", stdin="".join(json.dumps(message) + "\n" for message in CONVERSATION), cwd=tmp_path
    )
    messages = [json.loads(line) for line in done.stdout.splitlines()]
    assert [message["id"] for message in messages] == [1, 2]
    assert messages[0]["result"]["agentInfo"]["name"] == "shop"
    for text in ("printed at import", "written to descriptor 1", "said by a child", "app up", "app down"):
        assert text in done.stderr
    assert done.returncode == 0


def test_settings_are_read_beside_the_project_and_not_where_it_is_started(command, project, tmp_path):
    (project / "acp.toml").write_text('[agent]\nenabled = true\n[agent.transport]\ntype = "http"\n')
    (tmp_path / "acp.toml").write_text("this is not TOML")
    done = command("stdio", "main:app", cwd=tmp_path)
    assert "acp.agent.transport.type=http" in done.stderr
    assert done.returncode == 2


@pytest.mark.parametrize(
    ("addition", "target", "expected"),
    [
        ("", "main:nothing", "main has no nothing"),
        ("", "main:os.sep", "no ASGI application"),
        ("empty = FastAPI()", "main:empty", "main:empty serves no agent"),
        (
            'app.include_router(AcpFastAPI(SecondAgent, path="/second").router)',
            "main:app",
            "main:app serves 2 agents: name the AcpFastAPI object",
        ),
    ],
    ids=["missing", "no app", "no agent", "two agents"],
)
def test_a_target_that_names_no_agent_is_refused_with_what_to_do(
    addition, target, expected, command, project, tmp_path
):
    (project / "main.py").write_text(f"{APPLICATION}\n{addition}\n")
    done = command("ask", target, "hi", cwd=tmp_path)
    assert expected in done.stderr
    assert "Traceback" not in done.stderr
    assert done.returncode == 2


def test_one_of_several_agents_is_named_by_its_object(command, project, tmp_path):
    addition = 'second = AcpFastAPI(SecondAgent, path="/second")\napp.include_router(second.router)'
    (project / "main.py").write_text(f"{APPLICATION}\n{addition}\n")
    assert command("ask", "main:second", "hi", cwd=tmp_path).stdout.splitlines()[-1] == "second"
    assert command("ask", "main:agents", "hi", cwd=tmp_path).stdout.splitlines()[-1] == "shared shop None"


def test_an_application_that_does_not_start_says_why(command, project, tmp_path):
    (project / "main.py").write_text(APPLICATION.replace('print("app up")', 'raise LookupError("no database")'))
    done = command("stdio", "main:app", cwd=tmp_path)
    assert "LookupError: no database" in done.stderr
    assert done.returncode not in (0, None)


def test_an_autoreloader_is_refused(command, tmp_path):
    done = command("stdio", "main:app", cwd=tmp_path, env={**os.environ, "WATCHFILES_CHANGES": "[]"})
    assert "autoreloader" in done.stderr
    assert done.returncode == 2


def test_the_entry_for_an_editor_starts_the_agent_from_any_folder(command, project, tmp_path, run_command):
    entry = json.loads(command("editor", "zed", "main:app", cwd=tmp_path).stdout)
    server = next(iter(entry["agent_servers"].values()))
    assert server["command"] == sys.executable
    talk = "".join(json.dumps(message) + "\n" for message in CONVERSATION)
    done = run_command(server["command"], *server["args"], stdin=talk, cwd="/")
    assert [json.loads(line)["id"] for line in done.stdout.splitlines()] == [1, 2], done.stderr


def test_an_agent_in_place_of_an_application_is_one_clear_line(run_python, repo_root):
    ended = run_python("-m", "acp_fastapi", "ask", "examples.agents:ProbeAgent", "hi", "--app-dir", repo_root)
    assert ended.returncode == 2
    assert "python -m acp_integration" in ended.stderr
    assert "Traceback" not in ended.stderr
