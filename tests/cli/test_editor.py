import json
import re
import sys

import pytest

from tests.cli.hostile import fill, left_alone

PROBE = "examples.agents:ProbeAgent"
FRAMEWORKS = {
    "acp_integration": ("", PROBE, "probe"),
    "acp_fastapi": ("", "examples.fastapi_app.main:app", "probe"),
    "acp_django": ("examples/django_project", None, "notes"),
}


def words_of(kind: str, printed: str) -> list[str]:
    """The command and its arguments, read as the editor reads them."""
    if kind == "neovim":
        command = json.loads(re.search(r"command = (.*),\n", printed)[1])
        arguments = re.search(r"args = \{ (.*) \},\n", printed)[1]
        return [command, *json.loads(f"[{arguments}]")]
    entry = json.loads(printed)
    for key in {"zed": ["agent_servers", "Probe"], "jetbrains": ["agent_servers", "Probe"]}.get(kind, []):
        entry = entry[key]
    entry = entry["acp.agents"]["Probe"] if kind == "vscode" else entry
    assert entry.get("type") == ("custom" if kind == "zed" else None)
    assert entry["env"] == {}
    return [entry["command"], *entry["args"]]


@pytest.mark.parametrize("kind", ["zed", "jetbrains", "neovim", "vscode", "generic"])
def test_an_entry_starts_the_agent_from_any_folder_with_an_empty_path(kind, command, handshake):
    printed = command("editor", kind, PROBE, "--title", "Probe")
    assert printed.returncode == 0, printed.stderr
    assert printed.stderr.startswith("# ")
    words = words_of(kind, printed.stdout)
    assert words[:3] == [sys.executable, "-P", "-m"]
    assert handshake(*words, cwd="/")["agentInfo"]["name"] == "probe"


@pytest.mark.parametrize("package", FRAMEWORKS)
def test_an_entry_reads_nothing_of_the_folder_it_is_started_in(package, run_python, repo_root, tmp_path, handshake):
    place, target, _ = FRAMEWORKS[package]
    words = ["-P", "-m", package, "editor", "generic", *([target] if target else []), "--app-dir", repo_root / place]
    printed = run_python(*words, cwd="/")
    assert printed.returncode == 0, printed.stderr
    fill(tmp_path)
    assert handshake(*words_of("generic", printed.stdout), cwd=tmp_path)["protocolVersion"] == 1
    assert left_alone(tmp_path)


def test_what_is_traced_and_logged_goes_into_the_entry_by_its_full_path(command, tmp_path):
    printed = command("editor", "generic", PROBE, "--trace", "frames", "--log-file", "log", "--log-level", "debug")
    words = words_of("generic", printed.stdout)
    assert words[-6:] == [
        "--log-level",
        "debug",
        "--trace",
        str(tmp_path / "frames"),
        "--log-file",
        str(tmp_path / "log"),
    ]


def test_an_unknown_editor_is_named_with_those_that_are_known(command):
    done = command("editor", "ed", PROBE)
    assert done.returncode == 2
    assert "invalid choice: 'ed'" in done.stderr
    assert "zed" in done.stderr


def test_a_title_and_a_folder_outside_ascii_are_kept(command, tmp_path):
    folder = tmp_path / "größe"
    folder.mkdir()
    printed = command("editor", "neovim", PROBE, "--title", "Größe", app_dir=folder)
    assert '["Größe"]' in printed.stdout
    assert str(folder) in printed.stdout
