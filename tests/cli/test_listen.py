import json
import re
import signal
import sys
import urllib.request

import pytest

INITIALIZE = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"protocolVersion": 1}}
ENDED_WITHIN = 3.0


@pytest.fixture
def listening(spawn, repo_root, tmp_path):
    """A listener that is up, and its address."""
    words = (
        "listen",
        "examples.agents:ProbeAgent",
        "--port",
        "0",
        "--app-dir",
        repo_root,
        "--trace",
        tmp_path / "trace",
    )
    process = spawn(sys.executable, "-P", "-m", "acp_integration", *words)
    said = process.stderr.readline().decode()
    return process, re.search(r"http://127\.0\.0\.1:\d+/acp", said)[0]


def initialize(address: str) -> dict:
    headers = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
    request = urllib.request.Request(address, json.dumps(INITIALIZE).encode(), headers)
    with urllib.request.urlopen(request, timeout=10) as answer:
        return json.loads(answer.read())


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 0), (signal.SIGINT, 130)])
def test_an_agent_is_served_on_a_port_of_its_own_until_a_signal(number, code, listening):
    process, address = listening
    assert initialize(address)["result"]["agentInfo"]["name"] == "probe"
    process.send_signal(number)
    out, err = process.communicate(timeout=ENDED_WITHIN)
    assert process.returncode == code
    assert out == b""
    assert err == b""


def test_both_directions_are_traced(listening, tmp_path):
    process, address = listening
    initialize(address)
    process.send_signal(signal.SIGTERM)
    process.wait(30)
    directions = [line.split()[1] for line in (tmp_path / "trace").read_text().splitlines()]
    assert directions == ["<-", "->"]


def test_a_port_that_is_taken_is_said_in_one_line(listening, command):
    _, address = listening
    port = address.rpartition(":")[2].split("/")[0]
    done = command("listen", "examples.agents:ProbeAgent", "--port", port, "--host", "127.0.0.1")
    assert done.stderr.splitlines()[-1].startswith(
        f"python -m acp_integration listen: Cannot listen on 127.0.0.1, port {port}: "
    )
    assert done.stderr.rstrip().endswith("; --port takes another, and 0 any free one")
    assert done.stderr.endswith("; --port takes another, and 0 any free one\n")
    assert "Traceback" not in done.stderr
    assert done.returncode == 2
