import json
import sys

import pytest

from acp_integration.entry import enter, mend_import_path
from tests.cli.hostile import fill, left_alone

INITIALIZE = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"protocolVersion": 1}})
AGENT = """
from acp_integration import acp_agent, on

@acp_agent(name="here", version="1")
class Here:
    @on.prompt
    async def answer(self, turn):
        return turn.text
"""


@pytest.mark.parametrize(
    "target",
    [("acp_integration", "examples.agents:ProbeAgent"), ("acp_fastapi", "examples.fastapi_app.main:app")],
    ids=["core", "fastapi"],
)
def test_a_folder_shadows_no_library_even_when_the_interpreter_looks_there_first(
    target, run_python, repo_root, tmp_path
):
    fill(tmp_path, package=False)
    package, name = target
    words = ("-m", package, "stdio", name, "--app-dir", repo_root)
    done = run_python(*words, stdin=INITIALIZE + "\n", cwd=tmp_path)
    assert json.loads(done.stdout)["result"]["protocolVersion"] == 1, done.stderr
    assert left_alone(tmp_path)


def test_a_target_of_the_current_folder_is_found_behind_the_libraries(run_python, tmp_path):
    fill(tmp_path, package=False)
    (tmp_path / "agents.py").write_text(AGENT)
    (tmp_path / "acp.toml").unlink()
    (tmp_path / "pyproject.toml").unlink()
    done = run_python("-m", "acp_integration", "ask", "agents:Here", "hello", cwd=tmp_path)
    assert done.stdout == "hello\n", done.stderr
    assert left_alone(tmp_path)


def test_the_current_folder_moves_to_the_end_of_the_path():
    path = ["/here", "/library"]
    mend_import_path(path, ["stdio", "agents"])
    assert path == ["/library", "/here"]


@pytest.mark.parametrize("word", ["--app-dir", "--app-dir=/there"])
def test_the_current_folder_leaves_the_path_when_another_is_named(word):
    path = ["/here", "/library"]
    mend_import_path(path, ["stdio", "agents", word, "/there"])
    assert path == ["/library"]


def test_a_missing_extra_is_named_with_the_command_that_installs_it(tmp_path, monkeypatch, capsys):
    (tmp_path / "needing.py").write_text("import no_such_framework\n")
    monkeypatch.setattr(sys, "path", ["", str(tmp_path), *sys.path])
    assert enter("needing", ["ask"], {"no_such_framework": "some"}) == 2
    assert "pip install 'acp-integration[some]'" in capsys.readouterr().err


def test_another_missing_module_is_not_mistaken_for_an_extra(tmp_path, monkeypatch):
    (tmp_path / "broken.py").write_text("import no_such_module\n")
    monkeypatch.setattr(sys, "path", ["", str(tmp_path), *sys.path])
    with pytest.raises(ModuleNotFoundError):
        enter("broken", ["ask"], {"no_such_framework": "some"})
