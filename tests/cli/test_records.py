"""What is written beside the conversation: the trace, and the log."""

import json
import stat

PROBE = "examples.agents:ProbeAgent"
NOISY = """
import ctypes, logging, os, subprocess, sys
from acp_integration import acp_agent, on

print("printed at import")
logging.basicConfig(stream=sys.stdout)
logging.warning("logged at import")
subprocess.run(["/bin/echo", "a child"])
os.write(1, b"written\\n")
ctypes.CDLL(None).puts(b"from C")

@acp_agent(name="noisy", version="1")
class Noisy:
    @on.prompt
    def answer(self, turn):
        print("printed in a turn")
        return "quiet"
"""


def frames(secret: str, *, text: str = "hello") -> str:
    server = {"name": "tool", "command": "/bin/tool", "args": [], "env": [{"name": "API", "value": secret}]}
    messages = [
        {"id": 1, "method": "initialize", "params": {"protocolVersion": 1}},
        {"id": 2, "method": "session/new", "params": {"cwd": "/", "mcpServers": [server]}},
    ]
    return "".join(json.dumps({"jsonrpc": "2.0", **message}) + "\n" for message in messages)


def test_a_trace_has_both_directions_and_no_secret_and_is_for_its_owner(command, tmp_path):
    done = command("stdio", PROBE, "--trace", "frames", stdin=frames("hush-hush"))
    trace = tmp_path / "frames"
    lines = [line.split(maxsplit=2) for line in trace.read_text().splitlines()]
    assert [direction for _, direction, _ in lines] == ["<-", "<-", "->", "->"] or sorted(
        direction for _, direction, _ in lines
    ) == ["->", "->", "<-", "<-"]
    assert all(json.loads(frame)["jsonrpc"] == "2.0" for _, _, frame in lines)
    assert "hush-hush" not in trace.read_text()
    assert stat.S_IMODE(trace.stat().st_mode) == 0o600
    assert len(done.stdout.splitlines()) == 2


def test_ask_traces_too(command, tmp_path):
    command("ask", PROBE, "hello", "--trace", "frames")
    text = (tmp_path / "frames").read_text()
    assert "session/prompt" in text
    assert "end_turn" in text


def test_standard_output_carries_frames_only_whatever_the_application_does(command, tmp_path):
    (tmp_path / "noisy.py").write_text(NOISY)
    done = command("stdio", "noisy", "--log-level", "debug", stdin=frames("x"), app_dir=tmp_path)
    assert [json.loads(line)["id"] for line in done.stdout.splitlines()] == [1, 2]
    for noise in ("printed at import", "logged at import", "a child", "written", "from C"):
        assert noise in done.stderr


def test_the_log_goes_into_the_file_that_is_named(command, tmp_path):
    done = command("ask", PROBE, "fail", "--log-file", "log")
    assert "Traceback" not in done.stderr
    assert "RuntimeError" in (tmp_path / "log").read_text()


def test_the_level_may_be_written_in_capitals(command):
    assert command("ask", PROBE, "hello", "--log-level", "ERROR").returncode == 0
