"""Standard input and output may be anything, and carry nothing but frames whatever the application prints."""

import json
import os
import pty
import socket
import subprocess
import sys
import tty
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from tests.runtime.conftest import stdio_command, stdio_environ

CONVERSATION = [
    {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"protocolVersion": 1}},
    {"jsonrpc": "2.0", "id": 2, "method": "session/new", "params": {"cwd": "/x", "mcpServers": []}},
    {"jsonrpc": "2.0", "id": 3, "method": "_work", "params": {"seconds": 0.1}},
]
INPUT = b"".join(json.dumps(message).encode() + b"\n" for message in CONVERSATION)
Start = Callable[..., "subprocess.Popen[bytes]"]


@pytest.fixture
def start(spawn: Any) -> Start:
    def start(agent: str = "RuleAgent", settings: dict[str, str] | None = None, **options: Any) -> Any:
        return spawn(*stdio_command(agent), env=stdio_environ(settings or {}), **options)

    return start


@pytest.fixture
def stack() -> Iterator[ExitStack]:
    with ExitStack() as stack:
        yield stack


def frames_of(output: bytes) -> list[dict[str, Any]]:
    return [json.loads(line) for line in output.splitlines() if line.strip()]


def ids_of(output: bytes) -> list[Any]:
    return sorted(frame["id"] for frame in frames_of(output))


@pytest.mark.parametrize("output", ["pipe", "file", "null"])
@pytest.mark.parametrize("source", ["pipe", "file", "null"])
def test_pipes_files_and_the_null_device_serve(
    start: Start, stack: ExitStack, tmp_path: Path, source: str, output: str
) -> None:
    (tmp_path / "in").write_bytes(INPUT)
    stdin = {"pipe": subprocess.PIPE, "null": subprocess.DEVNULL}.get(source) or stack.enter_context(
        open(tmp_path / "in", "rb")
    )
    stdout = {"pipe": subprocess.PIPE, "null": subprocess.DEVNULL}.get(output) or stack.enter_context(
        open(tmp_path / "out", "wb")
    )
    process = start(stdin=stdin, stdout=stdout)
    written, log = process.communicate(INPUT if source == "pipe" else None, timeout=30)
    assert process.returncode == 0, log
    if output != "null":
        got = written if output == "pipe" else (tmp_path / "out").read_bytes()
        assert ids_of(got) == ([] if source == "null" else [1, 2, 3])


def test_a_socket_serves(start: Start) -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        process = start(stdin=theirs, stdout=theirs)
        theirs.close()
        ours.settimeout(20)
        ours.sendall(INPUT)
        ours.shutdown(socket.SHUT_WR)
        got = b""
        while data := ours.recv(65536):
            got += data
        assert ids_of(got) == [1, 2, 3]
        assert process.wait(10) == 0


def test_a_terminal_serves(start: Start) -> None:
    master, slave = pty.openpty()
    tty.setraw(slave)
    process = start(stdin=slave, stdout=slave)
    os.close(slave)
    os.write(master, INPUT)
    got = b""
    while got.count(b"\n") < 3:
        got += os.read(master, 65536)
    assert ids_of(got) == [1, 2, 3]
    os.close(master)
    assert process.wait(10) == 0


def test_the_last_line_needs_no_line_break(start: Start) -> None:
    process = start()
    written, _ = process.communicate(INPUT.rstrip(b"\n"), timeout=30)
    assert ids_of(written) == [1, 2, 3]


def test_what_the_application_prints_never_lands_between_frames(spawn: Any, tmp_path: Path) -> None:
    (tmp_path / "noisy.py").write_text(NOISY_AGENT)
    process = spawn(sys.executable, "-m", "acp_integration", "stdio", "noisy:Noisy", "--app-dir", tmp_path)
    content = [{"type": "text", "text": "make noise"}]
    prompt = {
        "jsonrpc": "2.0",
        "id": 3,
        "method": "session/prompt",
        "params": {"sessionId": "the one", "prompt": content},
    }
    frames = []
    for message in (CONVERSATION[0], CONVERSATION[1], prompt):
        process.stdin.write(json.dumps(message).encode() + b"\n")
        process.stdin.flush()
        frames.append(json.loads(process.stdout.readline()))
    frames.append(json.loads(process.stdout.readline()))
    out, err = process.communicate(timeout=30)
    assert (process.returncode, out) == (0, b""), err
    assert [frame.get("id") for frame in frames] == [1, 2, None, 3]
    for noise in (b"at import", b"from a handler", b"a child", b"the descriptor", b"from C", b"a thread", b"logged"):
        assert noise in err
    assert [sorted(frame) for frame in frames[2:]] == [["jsonrpc", "method", "params"], ["id", "jsonrpc", "result"]]


NOISY_AGENT = """
import ctypes, logging, os, subprocess, sys, threading
from acp_integration import PromptContext, acp_agent, on

print("at import")
logging.basicConfig(stream=sys.stdout)

@acp_agent
class Noisy:
    @on.new_session
    async def new(self):
        return {"sessionId": "the one"}

    @on.prompt
    def prompt(self, turn):
        print("from a handler", flush=True)
        logging.warning("logged")
        subprocess.run(["echo", "from a child"], check=True)
        assert subprocess.run(["cat"], capture_output=True, timeout=5).stdout == b"", "a child reads no frame"
        os.write(1, b"from the descriptor\\n")
        libc = ctypes.CDLL(None)
        libc.puts(b"from C")
        libc.fflush(None)
        thread = threading.Thread(target=lambda: print("from a thread"))
        thread.start()
        thread.join()
        return "done"
"""


def test_a_twenty_megabyte_line_is_one_frame(start: Start) -> None:
    big = {**CONVERSATION[2], "params": {"text": "x" * 20_000_000}}
    process = start()
    written, _ = process.communicate(json.dumps(big).encode() + b"\n", timeout=60)
    (answer,) = frames_of(written)
    assert len(answer["result"]["done"]["text"]) == 20_000_000


def test_an_endless_line_takes_bounded_memory(start: Start) -> None:
    process = start(settings={"max-message-size": "1MB"})
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(INPUT)
    process.stdin.flush()
    for _ in CONVERSATION:
        process.stdout.readline()
    before = peak_memory(process.pid)
    for _ in range(60):
        process.stdin.write(b"x" * 1_000_000)
    process.stdin.write(b"\n" + INPUT)
    process.stdin.flush()
    refusal = json.loads(process.stdout.readline())
    assert (refusal["id"], refusal["error"]["code"]) == (None, -32600)
    assert json.loads(process.stdout.readline())["id"] in (1, 2, 3)
    assert peak_memory(process.pid) - before < 20_000_000


def test_a_slow_reader_slows_the_sender_and_loses_nothing(start: Start) -> None:
    process = start()
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(INPUT)
    process.stdin.flush()
    answers = [json.loads(process.stdout.readline()) for _ in CONVERSATION]
    session = next(answer["result"]["sessionId"] for answer in answers if answer["id"] == 2)
    before = peak_memory(process.pid)
    prompt = {"jsonrpc": "2.0", "id": 9, "method": "session/prompt"}
    prompt["params"] = {"sessionId": session, "prompt": [{"type": "text", "text": "stream:200000"}]}
    process.stdin.write(json.dumps(prompt).encode() + b"\n")
    process.stdin.flush()
    texts = []
    while "id" not in (frame := json.loads(process.stdout.readline())):
        if len(texts) == 1:
            assert peak_memory(process.pid) - before < 30_000_000, "what nobody reads yet piles up"
        texts.append(frame["params"]["update"]["content"]["text"])
    assert texts == [str(number) for number in range(200_000)]


def peak_memory(pid: int) -> int:
    status = Path(f"/proc/{pid}/status").read_text()
    line = next(line for line in status.splitlines() if line.startswith("VmHWM"))
    return int(line.split()[1]) * 1024
