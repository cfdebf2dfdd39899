"""Endpoints are given the client of an agent: one for all of them, opened at its first use, closed with the app."""

import json
import sys
from typing import Annotated, Any

import anyio
import psutil
import pytest
from fastapi import Depends, FastAPI, WebSocket
from fastapi.responses import StreamingResponse
from fastapi.testclient import TestClient

from acp_fastapi import AcpFastAPI, ClientDep, SyncClientDep, TurnDep
from acp_integration import AcpClientSettings, PromptContext, acp_agent, on
from acp_integration.errors import ConfigurationError
from tests.fastapi.peers import over_socket

PROBE = {"stdio": {"command": sys.executable, "args": ["-m", "acp_integration", "stdio", "examples.agents:ProbeAgent"]}}


Other = ClientDep["other"]
SyncOther = SyncClientDep["other"]


def client_settings(**transport: Any) -> AcpClientSettings:
    return AcpClientSettings.from_mapping({"transport": transport or PROBE}, prefix="")


def children() -> set[int]:
    return {child.pid for child in psutil.Process().children(recursive=True)}


def driving(**options: Any) -> FastAPI:
    app = FastAPI()
    app.include_router(AcpFastAPI(**({"client": client_settings()} | options)).router)

    @app.get("/ask")
    async def ask(q: str, client: ClientDep) -> str:
        return (await (await client.new_session("/tmp")).prompt(q)).text

    @app.get("/ask-blocking")
    def ask_blocking(q: str, client: SyncClientDep) -> str:
        return client.new_session("/tmp").prompt(q).text

    @app.get("/same")
    async def same(one: ClientDep, two: SyncClientDep) -> bool:
        return two.async_client is one

    @app.get("/events")
    async def events(q: str, turn: TurnDep) -> StreamingResponse:
        return await turn.events(q)

    @app.websocket("/chat")
    async def chat(socket: WebSocket, turn: TurnDep) -> None:
        await turn.socket(socket)

    return app


@pytest.fixture(autouse=True)
def in_the_repository(monkeypatch, repo_root):
    monkeypatch.chdir(repo_root)


def test_a_client_is_opened_when_first_asked_for_shared_and_closed_with_the_app():
    before = children()
    with TestClient(driving()) as http:
        assert children() == before
        assert http.get("/ask", params={"q": "hi"}).json() == "echo: hi"
        opened = children() - before
        assert len(opened) == 1
        assert http.get("/ask-blocking", params={"q": "hi"}).json() == "echo: hi"
        assert http.get("/same").json() is True
        assert children() - before == opened
    assert children() == before


def test_named_clients_are_asked_for_by_their_names():
    app = driving(client={"default": client_settings(), "other": client_settings()})

    @app.get("/names")
    async def names(one: ClientDep, other: Other, blocking: SyncOther) -> list[bool]:
        return [one is other, blocking.async_client is other]

    with TestClient(app) as http:
        assert http.get("/names").json() == [False, True]


def test_clients_come_from_the_environment(monkeypatch):
    monkeypatch.setenv("ACP_CLIENT_TRANSPORT_STDIO_COMMAND", sys.executable)
    monkeypatch.setenv("ACP_CLIENT_TRANSPORT_STDIO_ARGS", json.dumps(PROBE["stdio"]["args"]))
    with TestClient(driving(client=None)) as http:
        assert http.get("/ask", params={"q": "hi"}).json() == "echo: hi"


def test_without_settings_there_is_no_client_and_the_error_says_what_to_do():
    with TestClient(driving(client={})) as http, pytest.raises(ConfigurationError, match=r"set acp\.client\.transport"):
        http.get("/same")


def test_too_many_transports_fail_the_start():
    settings = client_settings(stdio={"command": "a"}, websocket={"uri": "ws://localhost/acp"})
    with pytest.raises(ConfigurationError, match="Several ACP client transports"), TestClient(driving(client=settings)):
        pass


def test_a_client_whose_agent_died_is_replaced():
    before = children()
    with TestClient(driving(), raise_server_exceptions=False) as http:
        assert http.get("/ask", params={"q": "hi"}).json() == "echo: hi"
        for pid in children() - before:
            psutil.Process(pid).kill()
        # The first that asks may be the one who notices the death, and fails with it.
        answers = [http.get("/ask", params={"q": "again"}) for _ in range(2)]
        assert answers[-1].json() == "echo: again"
    assert children() == before


def test_customizers_add_handlers_to_a_client():
    asked = []

    def customize(builder: Any) -> None:
        @builder.on_permission
        async def allow(request: Any) -> str:
            asked.append(len(request.options))
            return "y"

    with TestClient(driving(customizers=[customize])) as http:
        assert http.get("/ask", params={"q": "perm"}).json().endswith("selected:y")
    assert asked == [2]


def test_overrides_put_another_client_in_its_place():
    app = driving()
    dependency = ClientDep.__metadata__[0].dependency

    class Fake:
        async def new_session(self, cwd: str) -> "Fake":
            return self

        async def prompt(self, text: str) -> "Fake":
            self.text = f"fake {text}"
            return self

    app.dependency_overrides[dependency] = Fake
    with TestClient(app) as http:
        assert http.get("/ask", params={"q": "hi"}).json() == "fake hi"


def test_a_turn_is_streamed_out_as_events():
    with TestClient(driving()) as http:
        answer = http.get("/events", params={"q": "stream:3:2"})
        assert answer.headers["content-type"].startswith("text/event-stream")
        *updates, result = [block.split("\n") for block in answer.text.strip().split("\n\n")]
        assert [update[0] for update in updates] == ["event: agent_message_chunk"] * 3
        assert result[0] == "event: result"
        assert json.loads(result[1].removeprefix("data: ")) == {"text": "xxxxxx", "stopReason": "end_turn"}


def test_a_turn_that_fails_ends_its_stream_with_an_error_without_its_text():
    with TestClient(driving()) as http:
        answer = http.get("/events", params={"q": "fail"})
        assert answer.text == 'event: error\ndata: {"message": "The agent failed"}\n\n'


def test_a_conversation_is_held_over_a_socket_of_the_application():
    with TestClient(driving()) as http, http.websocket_connect("/chat") as socket:
        for text in ("one", "two"):
            socket.send_text(text)
            assert socket.receive_json()["update"]["content"]["text"] == f"echo: {text}"
            assert socket.receive_json() == {"type": "result", "text": f"echo: {text}", "stopReason": "end_turn"}


async def test_a_reader_that_leaves_cancels_the_turn(serve, http, bound):
    address = await serve(driving())
    with bound(20):
        async with http.stream("GET", f"http://{address}/events", params={"q": "wait_for_cancel"}) as stream:
            await anext(stream.aiter_lines())
        # The one agent answers again: its turn was given up, and its process is still the same.
        answer = await http.get(f"http://{address}/ask", params={"q": "hi"})
    assert answer.json() == "echo: hi"


async def test_an_agent_that_is_served_may_drive_another_one(serve):
    @acp_agent
    class Relay:
        @on.prompt
        async def answer(self, turn: PromptContext, client: ClientDep) -> str:
            return (await (await client.new_session("/tmp")).prompt(turn.text)).text

    app = FastAPI()
    app.include_router(AcpFastAPI(Relay, client=client_settings()).router)
    address = await serve(app)
    with anyio.fail_after(20):
        async with over_socket(f"{address}/acp") as peer:
            assert await peer.say("hi") == "echo: hi"


def test_what_a_type_checker_sees_is_what_fastapi_gets():
    assert ClientDep == Annotated[ClientDep.__origin__, *ClientDep.__metadata__]
    assert isinstance(ClientDep.__metadata__[0], type(Depends(print)))
