import os
import signal
import sys
import threading

import pytest

from acp_integration.cli.core import start
from acp_integration.patience import SLOW_SECONDS

PROBE = "examples.agents:ProbeAgent"
HEADER = "from acp_integration import acp_agent, on\n"
COMMANDS = ["stdio", "ask", "chat", "inspect", "editor", "listen", "doctor"]


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("", "mistaken defines no @acp_agent class or function"),
        (
            "import no_such_thing",
            "mistaken cannot be imported: ModuleNotFoundError(\"No module named 'no_such_thing'\")",
        ),
        ("1/0", "mistaken cannot be imported: ZeroDivisionError('division by zero') ("),
        ("@acp_agent(name='a')\nclass A: pass", "on.prompt"),
        ("@acp_agent(name='a')\nclass A:\n    @on.prompt\n    def p(self, what): ...", "what"),
        ("@acp_agent(name='a')\nclass A:\n    def __init__(self, x): ...\n    @on.prompt\n    def p(self): ...", "A"),
    ],
)
@pytest.mark.parametrize("name", ["stdio", "ask", "inspect"])
def test_what_a_user_did_wrong_is_one_line_and_exit_code_2(name, code, expected, command, tmp_path):
    (tmp_path / "mistaken.py").write_text(HEADER + code + "\n")
    done = command(name, "mistaken", *(["x"] if name == "ask" else []), app_dir=tmp_path)
    assert done.returncode == 2
    assert done.stdout == ""
    (line,) = done.stderr.splitlines()
    assert line.startswith(f"python -m acp_integration {name}: ")
    assert expected in line


def test_an_error_in_the_application_names_file_and_line(command, tmp_path):
    (tmp_path / "mistaken.py").write_text("\n\n1/0\n")
    done = command("ask", "mistaken", "x", app_dir=tmp_path)
    assert done.stderr.endswith(f"({tmp_path / 'mistaken.py'}, line 3)\n")


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["frobnicate"], "invalid choice: 'frobnicate'"),
        ([], "required: COMMAND"),
        (["ask", PROBE], "required: TEXT"),
        (["ask", PROBE, "x", "--log-level", "loud"], "invalid choice: 'loud' (choose from 'debug', 'info'"),
        (["ask", PROBE, "x", "--approve"], "unrecognized arguments: --approve"),
        (["ask", "no such target", "x"], "'no such target' is not a target: write module:Name or module"),
        (["ask", "no_such_module", "x"], "There is no module no_such_module: --app-dir says in which folder it lies\n"),
        (["ask", "examples.agents:Nobody", "x"], "examples.agents has no Nobody"),
        (["ask", "examples.agents", "x"], "Found 2 @acp_agent classes"),
        (["ask", PROBE, "x", "--cwd", "/no/such/folder"], "--cwd /no/such/folder is not a directory"),
        (["ask", PROBE, "x", "--trace", "/no/such/folder/x"], "cannot be written: No such file or directory"),
        (["ask", PROBE, "x", "--log-file", "/no/such/folder/x"], "cannot be written: No such file or directory"),
        (["ask", PROBE, "x", "--app-dir", "/no/such/folder"], "--app-dir /no/such/folder is not a directory"),
        (["doctor", "nobody"], "There is no client 'nobody'; those configured: none"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else None,
)
def test_a_command_line_that_cannot_be_used_is_one_line_and_exit_code_2(words, expected, run_python, repo_root):
    done = run_python("-m", "acp_integration", *words, cwd=repo_root)
    assert done.returncode == 2
    (line,) = done.stderr.splitlines()
    assert expected in f"{line}\n"


def test_every_bad_setting_is_a_line(command):
    environ = {**os.environ, "ACP_AGENT_REQUEST_TIMEOUT": "soon", "ACP_AGENT_MAX_MESSAGE_SIZE": "big"}
    done = command("stdio", PROBE, env=environ)
    assert done.returncode == 2
    assert "ACP_AGENT_REQUEST_TIMEOUT=soon" in done.stderr
    assert "ACP_AGENT_MAX_MESSAGE_SIZE=big" in done.stderr
    assert len(done.stderr.splitlines()) == 2


@pytest.mark.parametrize("name", COMMANDS)
def test_the_help_of_each_command_shows_an_example(name, command):
    done = command(name, "--help")
    assert done.returncode == 0
    assert f"example: python -m acp_integration {name}" in done.stdout
    assert "--trace FILE" in done.stdout


def test_the_help_lists_every_command(run_python):
    done = run_python("-m", "acp_integration", "--help")
    assert all(f"    {name} " in done.stdout for name in COMMANDS)


@pytest.mark.parametrize("name", ["WATCHFILES_CHANGES", "RUN_MAIN", "WERKZEUG_RUN_MAIN"])
def test_an_autoreloader_is_refused_on_standard_streams(name, command):
    done = command("stdio", PROBE, env={**os.environ, name: "true"})
    assert done.returncode == 2
    assert f"An autoreloader ({name} is set)" in done.stderr


def test_a_target_that_ends_the_process_is_named(command, tmp_path):
    (tmp_path / "ending.py").write_text("import sys\nsys.exit(3)\n")
    done = command("stdio", "ending", app_dir=tmp_path)
    assert done.stderr == "python -m acp_integration stdio: the target ended the process (3)\n"
    assert done.returncode == 3


@pytest.mark.parametrize("name", ["stdio", "ask"])
def test_an_interrupt_during_the_import_ends_without_a_traceback(name, spawn, tmp_path):
    (tmp_path / "endless.py").write_text(
        "import sys, time\nprint('importing', file=sys.stderr, flush=True)\ntime.sleep(60)\n"
    )
    words = (name, "endless", *(["x"] if name == "ask" else []), "--app-dir", tmp_path)
    process = spawn(sys.executable, "-P", "-m", "acp_integration", *words)
    assert process.stderr.readline() == b"importing\n"
    process.send_signal(signal.SIGINT)
    assert process.communicate(timeout=30) == (b"", b"")
    assert process.returncode == 130


def test_a_slow_start_is_said_while_it_lasts(spawn, repo_root, tmp_path):
    gate = tmp_path / "gate"
    os.mkfifo(gate)
    (tmp_path / "slow.py").write_text(f"open({str(gate)!r}).close()\nfrom examples.agents import ProbeAgent as Slow\n")
    words = ("stdio", "slow:Slow", "--app-dir", tmp_path)
    environ = {**os.environ, "PYTHONPATH": str(repo_root)}
    process = spawn(sys.executable, "-P", "-m", "acp_integration", *words, env=environ)
    assert process.stderr.readline().decode() == (
        f"python -m acp_integration stdio: still starting after {SLOW_SECONDS:g} s; "
        "a client that waits may lose patience\n"
    )
    gate.open("w").close()
    out, err = process.communicate(timeout=30)
    assert out == b""
    assert b"python -m acp_integration stdio: started after " in err
    assert process.returncode == 0


def test_a_start_that_is_not_slow_says_nothing_and_leaves_no_timer(capsys):
    assert start(["inspect", PROBE], None) == 0
    assert capsys.readouterr().err == ""
    timers = [thread for thread in threading.enumerate() if isinstance(thread, threading.Timer)]
    for timer in timers:
        timer.join(SLOW_SECONDS / 2)
    assert not any(timer.is_alive() for timer in timers)
