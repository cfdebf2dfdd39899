"""The example shop: its agent reads and writes the shop's database for the user who is logged in."""

import pytest
from fastapi.testclient import TestClient
from starlette.websockets import WebSocketDisconnect

from examples.fastapi_app.shop import app
from tests.fastapi.test_documentation import Conversation


@pytest.fixture
def shop(tmp_path, monkeypatch):
    monkeypatch.setenv("SHOP_DATABASE", f"sqlite:///{tmp_path / 'shop.sqlite3'}")
    with TestClient(app) as http:
        yield http


def talk(http: TestClient, token: str, *texts: str) -> tuple[list[str], int]:
    with http.websocket_connect("/acp", headers={"Authorization": f"Bearer {token}"}) as socket:
        conversation = Conversation(socket)
        conversation.call("initialize", protocolVersion=1)
        session = conversation.call("session/new", cwd="/tmp", mcpServers=[])["sessionId"]
        return [conversation.say(session, text) for text in texts], conversation.permissions


def test_an_order_needs_permission_is_kept_and_belongs_to_its_user(shop):
    said, permissions = talk(shop, "ada-token", "/orders", "/order tea", "/orders", "hello")
    assert said[:3] == ["You have ordered nothing.", "Ordered tea.", "tea"]
    assert permissions == 1
    assert talk(shop, "bob-token", "/orders")[0] == ["You have ordered nothing."]
    assert talk(shop, "ada-token", "/orders")[0] == ["tea"]


@pytest.mark.parametrize("token", ["nobody", ""])
def test_without_a_token_of_the_shop_nobody_gets_in(shop, token):
    assert shop.post("/acp", json={}, headers={"Authorization": f"Bearer {token}"}).status_code in (401, 403)
    with pytest.raises(WebSocketDisconnect):
        talk(shop, token, "/orders")


def test_an_endpoint_drives_a_second_agent(shop):
    answer = shop.get("/files", params={"ending": "py"}, headers={"Authorization": "Bearer ada-token"})
    assert answer.json()["for"] == "ada"
    assert ".py" in answer.json()["said"]


def test_on_standard_input_the_agent_works_for_whoever_starts_it(run_python, tmp_path, repo_root):
    database = f"sqlite:///{tmp_path / 'shop.sqlite3'}"
    for text, answer in (("/order tea", "Ordered tea."), ("/orders", "tea")):
        done = run_python(
            *("-m", "acp_fastapi", "ask", "--approve-all", "examples.fastapi_app.shop:app", text),
            cwd=repo_root,
            env={"SHOP_DATABASE": database, "PATH": ""},
        )
        assert done.stdout.strip() == answer, done.stderr
