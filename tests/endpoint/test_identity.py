"""A connection belongs to whoever opened it, and a stranger on the network is nobody."""

import json
from contextvars import ContextVar

import anyio
import pytest

from acp_integration import PromptContext, acp_agent, on
from acp_integration.caller import Caller
from acp_integration.endpoint import CALLER_KEY
from tests.endpoint.driver import INITIALIZE, ids, prompt, request, scope_of

ANN = {CALLER_KEY: Caller(user={"name": "Ann"}, principal="ann", guarded=True)}
BOB = {CALLER_KEY: Caller(user={"name": "Bob"}, principal="bob", guarded=True)}
FAR = {"client": ("192.0.2.7", 5000)}


@acp_agent(name="who")
class Who:
    @on.prompt
    async def answer(self, turn: PromptContext) -> str:
        assert turn.http is not None
        return f"{turn.user['name']} at {turn.http.path} with {turn.http.headers['x-trace']} from {turn.http.client[0]}"


async def test_the_connection_of_another_principal_is_unknown_to_everybody_else(drive):
    driver = await drive()
    connection = await driver.connection(**ANN)
    message = request("session/new", cwd="/", mcpServers=[])
    for stranger in (BOB, {}, {CALLER_KEY: Caller(guarded=True)}):
        statuses = [
            (await driver.post(message, connection, **stranger)).status,
            (await driver.request("GET", {"accept": "*/*", **ids(connection, None)}, **stranger)).status,
            (await driver.request("DELETE", ids(connection, None), **stranger)).status,
        ]
        assert statuses == [404, 404, 404]
    assert (await driver.post(message, connection, **ANN)).status == 202


async def test_a_handler_sees_the_user_and_the_request_that_opened_the_connection(drive):
    driver = await drive(Who)
    headers = {"content-type": "application/json", "x-trace": "7"}
    opened = await driver.request("POST", headers, json.dumps(INITIALIZE).encode(), **ANN)
    connection = opened.headers["acp-connection-id"]
    stream = await driver.stream(connection, **ANN)
    await driver.post(request("session/new", 1, cwd="/", mcpServers=[]), connection, **ANN)
    with anyio.fail_after(5):
        await stream.until(lambda: 1 in stream.answers)
        session = stream.answers[1]["result"]["sessionId"]
        updates = await driver.stream(connection, session, **ANN)
        await driver.post(prompt(session, "who?", 2), connection, session, **ANN)
        await updates.until(lambda: 2 in updates.answers)
    assert updates.events[0][1]["params"]["update"]["content"]["text"] == "Ann at /acp with 7 from 127.0.0.1"


@pytest.mark.parametrize(
    ("scope", "status"),
    [
        ({}, 200),
        ({"client": ("::1", 1)}, 200),
        ({"client": ("::ffff:127.0.0.1", 1)}, 200),
        ({"client": ("127.8.8.8", 1)}, 200),
        (FAR, 403),
        ({"client": None}, 403),
        ({"client": ("", 0)}, 403),
        ({"client": ("testclient", 0)}, 403),
        ({**FAR, **ANN}, 200),
        ({**FAR, CALLER_KEY: Caller(guarded=True)}, 200),
        ({**FAR, CALLER_KEY: Caller(user=object())}, 200),
        ({**FAR, CALLER_KEY: Caller()}, 403),
    ],
)
async def test_without_a_user_and_a_guard_only_this_machine_is_served(drive, scope, status):
    driver = await drive()
    answer = await driver.post(INITIALIZE, **scope)
    assert answer.status == status
    assert status == 200 or b"acp.agent.transport.http.require-auth" in answer.body


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"x-forwarded-for": "192.0.2.7"}, 403),
        ({"x-forwarded-for": "127.0.0.1, 192.0.2.7"}, 403),
        ({"x-real-ip": "192.0.2.7"}, 403),
        ({"forwarded": "for=192.0.2.7"}, 403),
        ({"x-forwarded-for": "127.0.0.1"}, 200),
    ],
)
async def test_a_proxy_on_this_machine_does_not_make_its_peers_local(drive, headers, status):
    driver = await drive()
    answer = await driver.request(
        "POST", {"content-type": "application/json", **headers}, json.dumps(INITIALIZE).encode()
    )
    assert answer.status == status


async def test_authentication_can_be_left_to_the_network(drive):
    driver = await drive(require_auth=False)
    assert (await driver.post(INITIALIZE, **FAR)).status == 200


async def test_a_stranger_opens_no_socket(drive):
    driver = await drive()
    call = driver.open({**scope_of(), "type": "websocket", **FAR}, {"type": "websocket.connect"})
    with anyio.fail_after(5):
        await call.ended.wait()
    assert [message["type"] for message in call.sent] == ["websocket.close"]


async def test_the_connection_of_a_socket_is_no_http_connection(drive):
    driver = await drive()
    call = driver.open({**scope_of(), "type": "websocket"}, {"type": "websocket.connect"})
    with anyio.fail_after(5):
        await call.until(lambda: len(call.sent) == 1)
    connection = dict(call.sent[0]["headers"])[b"acp-connection-id"].decode()
    assert (await driver.post(request("session/list"), connection)).status == 404


async def test_a_host_that_is_not_allowed_is_403_and_names_the_setting_and_the_value(drive):
    driver = await drive(allowed_hosts=("app.example",))
    headers = {"content-type": "application/json"}
    refused = await driver.request("POST", {**headers, "host": "evil.example"})
    assert refused.status == 403
    assert b"'evil.example'" in refused.body
    assert b"acp.agent.transport.http.allowed-hosts" in refused.body
    assert (await driver.request("POST", {**headers, "host": "app.example:8000"})).status == 400


LEAK = ContextVar("LEAK", default="clean")


@acp_agent(name="leaky")
class Leaky:
    @on.prompt
    async def answer(self, turn: PromptContext) -> str:
        return LEAK.get()


async def test_nothing_of_the_request_that_opens_a_connection_leaks_into_its_agent(drive):
    driver = await drive(Leaky)
    LEAK.set("of the request")
    connection = await driver.connection()
    session = await driver.session(connection)
    stream = await driver.stream(connection, session)
    await driver.post(prompt(session, "what?", 2), connection, session)
    with anyio.fail_after(5):
        await stream.until(lambda: 2 in stream.answers)
    assert stream.events[0][1]["params"]["update"]["content"]["text"] == "clean"
