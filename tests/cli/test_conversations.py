import json
import signal
import sys

import pytest

PROBE = "examples.agents:ProbeAgent"


def test_ask_writes_what_the_agent_says_and_nothing_else_to_standard_output(command):
    done = command("ask", PROBE, "thought")
    assert done.stdout == "thought\n"
    assert done.stderr == "thinking\n"
    assert done.returncode == 0


@pytest.mark.parametrize(("option", "outcome"), [("--approve-all", "y"), ("--deny-all", "n"), (None, "n")])
def test_permissions_are_answered_as_told_and_refused_where_nobody_can_be_asked(option, outcome, command):
    done = command("ask", PROBE, "perm", *([option] if option else []))
    assert done.stdout == f"permission:selected:{outcome}\n"
    assert "* Do what needs permission completed" in done.stderr
    assert ("nobody can be asked" in done.stderr) is (option is None)


def test_both_answers_at_once_are_refused(command):
    assert command("ask", PROBE, "perm", "--approve-all", "--deny-all").returncode == 2


def test_json_gives_every_update_and_the_result_as_a_line_each(command):
    lines = [json.loads(line) for line in command("ask", PROBE, "stream:3:5", "--json").stdout.splitlines()]
    assert [line["content"]["text"] for line in lines[:-1]] == ["xxxxx"] * 3
    assert lines[-1] == {"stopReason": "end_turn"}


def test_an_agent_that_fails_gives_exit_code_1_and_one_line(command):
    done = command("ask", PROBE, "fail", "--log-file", "log")
    assert done.stderr == "python -m acp_integration ask: session/prompt: Internal error (-32603)\n"
    assert done.stdout == ""
    assert done.returncode == 1


def test_a_reader_that_leaves_early_gives_no_traceback(spawn, repo_root):
    words = ("-P", "-m", "acp_integration", "ask", PROBE, "stream:2000:1000", "--app-dir", repo_root)
    process = spawn(sys.executable, *words)
    process.stdout.read(1000)
    process.stdout.close()
    assert process.stderr.read() == b""
    assert process.wait(30) == 0


def test_a_signal_cancels_the_turn_and_lets_it_end(spawn, repo_root):
    words = ("-P", "-m", "acp_integration", "ask", PROBE, "finally", "--app-dir", repo_root)
    process = spawn(sys.executable, *words)
    assert process.stdout.read(7) == b"waiting"
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=30)
    assert out == b"cleaned up\n"
    assert err == b"[cancelled]\n"
    assert process.returncode == 130


def test_a_second_signal_ends_at_once(spawn, repo_root, tmp_path):
    (tmp_path / "stubborn.py").write_text(STUBBORN)
    words = ("-P", "-m", "acp_integration", "ask", "stubborn:Stubborn", "x", "--app-dir", tmp_path)
    process = spawn(sys.executable, *words)
    assert process.stdout.read(5) == b"never"
    process.send_signal(signal.SIGINT)
    assert process.stdout.read(9) == b"cancelled"
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=30)
    assert b"Traceback" not in err
    assert process.returncode == 130


STUBBORN = """
import asyncio
from acp_integration import acp_agent, on

@acp_agent(name="stubborn", version="1")
class Stubborn:
    @on.prompt(cancellation="cooperative")
    async def answer(self, turn):
        await turn.send_message("never")
        await turn.wait_cancelled()
        await turn.session.send_message("cancelled")
        await asyncio.Event().wait()
"""


def test_chat_goes_on_when_a_turn_fails(command):
    done = command("chat", PROBE, "--log-file", "log", stdin="one\nfail\ntwo\n")
    assert done.stdout == "echo: one\necho: two\n"
    assert "The agent failed: session/prompt: Internal error" in done.stderr
    assert done.returncode == 0


def test_chat_takes_a_last_line_without_an_end_and_reads_files_too(spawn, repo_root, tmp_path):
    (tmp_path / "lines").write_text("one\ntwo")
    words = ("-P", "-m", "acp_integration", "chat", PROBE, "--app-dir", repo_root)
    with (tmp_path / "lines").open() as lines:
        process = spawn(sys.executable, *words, stdin=lines)
    assert process.stdout.read() == b"echo: one\necho: two\n"
    assert process.wait(30) == 0


def test_a_person_is_asked_for_permission(screen):
    chat = screen("chat", PROBE)
    chat.wait_for("> ")
    chat.type("perm\n")
    chat.wait_for("Choose a number")
    assert "The agent asks: Do what needs permission\n  1. Yes\n  2. No\n" in chat.seen
    chat.type("1\n")
    chat.wait_for("permission:selected:y")
    chat.wait_for("permission:selected:y\n> ")
    chat.type("perm\n")
    chat.wait_for("Choose a number, anything else refuses: 1\n")
    chat.type("nonsense\n")
    chat.wait_for("permission:selected:n")
    chat.type("\n")
    assert chat.end() == 0


def test_ctrl_c_cancels_the_turn_and_the_conversation_goes_on(screen):
    chat = screen("chat", PROBE)
    chat.wait_for("> ")
    chat.type("wait_for_cancel\n")
    chat.wait_for("waiting")
    chat.interrupt()
    chat.wait_for("[cancelled]\n> ")
    chat.type("hello\n")
    chat.wait_for("echo: hello\n> ")
    chat.interrupt()
    assert chat.end() == 130
    assert "Traceback" not in chat.seen


def test_ctrl_c_at_a_question_cancels_the_turn(screen):
    ask = screen("ask", PROBE, "perm")
    ask.wait_for("Choose a number")
    ask.interrupt()
    assert ask.end() == 130
    assert "[cancelled]" in ask.seen
    assert "Traceback" not in ask.seen


def test_what_an_agent_says_cannot_move_the_cursor_of_a_terminal(screen, tmp_path):
    (tmp_path / "forger.py").write_text(FORGER)
    ask = screen("ask", "forger:Forger", "x", "--app-dir", str(tmp_path))
    assert ask.end() == 0
    assert "\x1b[2K" not in ask.seen
    assert "a[2Kb" in ask.seen


FORGER = r"""
from acp_integration import acp_agent, on

@acp_agent(name="forger", version="1")
class Forger:
    @on.prompt
    async def answer(self, turn):
        return "a\x1b[2Kb"
"""
