"""The official TypeScript client exercises all that the probe agent shows; every message of both sides is valid."""

import json
import sys
from pathlib import Path

from tests.schema import validate_log

SCRIPT = Path(__file__).resolve().parent / "npm_client.mjs"
TURN = ["agent_message_chunk"]
CALL = ["tool_call", "tool_call_update", "agent_message_chunk"]
OPTIONS = "options:[('model', 'fast'), ('voice', 'terse'), ('web', True)]"
SEEN = {
    "loads": True,
    "modes": ["ask", "code"],
    "options": ["select", "select", "boolean"],
    "set": ["fast", "terse", True],
    "words": {
        "readfile:/notes.txt": ["from the file", TURN],
        "writefile:/new.txt": ["written", TURN],
        "term:echo hello": ["exit 0: hello\n", CALL],
        "perm": ["permission:selected:y", CALL],
        "plan": ["planned", ["plan", *TURN]],
        "elicit:form": ["form:accept:Ada", TURN],
        "elicit:url": ["url:accept", [*TURN, "completed"]],
        "image": ["", TURN],
        "diff": ["edited", CALL],
        "usage": ["counted", ["usage_update", *TURN]],
        "commands": ["listed", ["available_commands_update", *TURN]],
    },
    "mode": f"mode:code {OPTIONS}",
    "resumed": f"mode:code {OPTIONS}",
    "written": "written by the probe\n",
    "open": 0,
    "listed": 1,
    "left": 0,
    "replayed": True,
}


def test_the_official_client_sees_everything_the_probe_shows(run_command, peers, peers_environ, repo_root, tmp_path):
    (tmp_path / "node_modules").symlink_to(peers)
    script = tmp_path / SCRIPT.name
    script.write_text(SCRIPT.read_text())
    agent = [
        sys.executable,
        "-m",
        "acp_integration",
        "stdio",
        "examples.agents:ProbeAgent",
        "--app-dir",
        str(repo_root),
    ]
    environ = {**peers_environ, "ACP_AGENT_SESSION_STORE": "memory:"}
    ended = run_command(peers / ".bin" / "node", script, json.dumps(agent), env=environ, timeout=60)
    assert ended.returncode == 0, ended.stderr
    seen = json.loads(ended.stdout.splitlines()[-1])
    wire = seen.pop("wire")
    assert seen == SEEN
    assert validate_log((one["from"], one["message"]) for one in wire).unanswered() == []
