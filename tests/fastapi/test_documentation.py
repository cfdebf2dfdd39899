"""The page about FastAPI stays true: its code runs, its agents answer as it says, the tests it names exist."""

import ast
import re
from typing import Any

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient
from starlette.testclient import WebSocketTestSession

from tests.conftest import REPO_ROOT

PAGE = REPO_ROOT / "docs" / "fastapi.md"
BLOCKS = re.findall(r"^```python\n(.*?)^```", PAGE.read_text(), re.MULTILINE | re.DOTALL)
NOTE = re.compile(r"^# (\w+): (.*)$", re.MULTILINE)


def run_block(number: int) -> tuple[dict[str, Any], dict[str, str]]:
    names: dict[str, Any] = {"__name__": f"fastapi_page_{number}"}
    exec(compile(BLOCKS[number], f"{PAGE.name}[{number}]", "exec"), names)
    return names, dict(NOTE.findall(BLOCKS[number]))


class Conversation:
    """The wire, spoken over a test client's socket; every permission is given, and counted."""

    def __init__(self, socket: WebSocketTestSession) -> None:
        self.socket = socket
        self.text = ""
        self.permissions = 0

    def call(self, method: str, **params: Any) -> Any:
        self.socket.send_json({"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
        while True:
            message = self.socket.receive_json()
            if "method" not in message:
                return message["result"]
            self.take(message)

    def take(self, message: dict[str, Any]) -> None:
        if message["method"] == "session/request_permission":
            self.permissions += 1
            allowed = next(option for option in message["params"]["options"] if option["kind"].startswith("allow"))
            outcome = {"outcome": {"outcome": "selected", "optionId": allowed["optionId"]}}
            self.socket.send_json({"jsonrpc": "2.0", "id": message["id"], "result": outcome})
        elif message["params"]["update"]["sessionUpdate"] == "agent_message_chunk":
            self.text += message["params"]["update"]["content"]["text"]

    def say(self, session: str, text: str) -> str:
        self.text = ""
        self.call("session/prompt", sessionId=session, prompt=[{"type": "text", "text": text}])
        return self.text


def says_something(number: int) -> bool:
    return "# prompt: " in BLOCKS[number]


@pytest.mark.parametrize("number", [number for number in range(len(BLOCKS)) if says_something(number)])
def test_an_agent_of_the_page_answers_as_the_page_says(number):
    names, notes = run_block(number)
    headers = dict([notes["headers"].split(": ", 1)]) if "headers" in notes else {}
    app: FastAPI = names["app"]
    path = notes.get("path", "/acp")
    with TestClient(app, client=("127.0.0.1", 1)) as http, http.websocket_connect(path, headers=headers) as socket:
        talk = Conversation(socket)
        talk.call("initialize", protocolVersion=1)
        session = talk.call("session/new", cwd="/tmp", mcpServers=[])["sessionId"]
        for text in (notes["prompt"], notes.get("again", notes["prompt"])):
            assert talk.say(session, text) == notes["answer"]
        assert talk.permissions == int(notes.get("permissions", 0))


@pytest.mark.parametrize("number", [number for number in range(len(BLOCKS)) if not says_something(number)])
async def test_the_other_code_of_the_page_runs(number):
    names, _ = run_block(number)
    tests = [value for name, value in names.items() if name.startswith("test_")]
    for test in tests:
        await test()
    assert tests or isinstance(names["app"], FastAPI)


def test_the_tests_that_the_page_names_exist():
    named = re.findall(r"`(?:test_\w+\.py)?(?:::)?(test_\w+)`", PAGE.read_text())
    assert len(named) > 25
    defined = {
        node.name
        for path in (REPO_ROOT / "tests").glob("*/test_*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    }
    assert set(named) <= defined
