"""The close codes, the order and the limits of a WebSocket: most over a real one, the rest driven."""

import itertools
import json
from contextlib import asynccontextmanager

import anyio
import pytest
from websockets.asyncio.client import connect
from websockets.exceptions import ConnectionClosed, InvalidStatus

from acp_integration.endpoint import websocket
from tests.endpoint.driver import INITIALIZE, Call, prompt, request, scope_of


@asynccontextmanager
async def opened(site, **options):
    async with connect(site.socket_url, max_size=2**27, **options) as socket:
        yield socket


async def ask(socket, message):
    await socket.send(json.dumps(message))
    return await answer_to(socket, message["id"])


async def answer_to(socket, identifier):
    with anyio.fail_after(10):
        while True:
            message = json.loads(await socket.recv())
            if message.get("id") == identifier and "method" not in message:
                return message


async def closing(socket):
    with anyio.fail_after(10):
        try:
            while True:
                await socket.recv()
        except ConnectionClosed as closed:
            return closed.rcvd.code


async def test_the_handshake_names_the_connection(serve):
    site = await serve()
    async with opened(site) as socket:
        assert len(socket.response.headers["acp-connection-id"].split(".")[1]) == 32


async def test_a_conversation(serve):
    site = await serve()
    async with opened(site) as socket:
        assert (await ask(socket, INITIALIZE))["result"]["protocolVersion"] == 1
        session = (await ask(socket, request("session/new", 1, cwd="/", mcpServers=[])))["result"]["sessionId"]
        await socket.send(json.dumps(prompt(session, "stream:50", 2)))
        received = [json.loads(await socket.recv()) for _ in range(51)]
    assert [message.get("method") for message in received] == ["session/update"] * 50 + [None]
    assert received[-1]["result"] == {"stopReason": "end_turn"}


@pytest.mark.parametrize("first", ['{"jsonrpc":"2.0","id":1,"method":"session/new","params":{}}', "junk", "[]", "42"])
async def test_a_first_message_that_is_not_initialize_is_1002(serve, first):
    site = await serve()
    async with opened(site) as socket:
        await socket.send(first)
        assert await closing(socket) == 1002


async def test_no_initialize_in_time_is_1008(serve):
    site = await serve(initialize_timeout=0.1)
    async with opened(site) as socket:
        assert await closing(socket) == 1008


async def test_a_socket_that_initialized_in_time_stays_open(serve):
    site = await serve(initialize_timeout=0.1)
    async with opened(site) as socket:
        await ask(socket, INITIALIZE)
        async with opened(site) as later:
            assert await closing(later) == 1008
        assert "result" in await ask(socket, request("session/new", 1, cwd="/", mcpServers=[]))


async def test_a_second_initialize_is_refused_and_the_socket_stays_open(serve):
    site = await serve()
    async with opened(site) as socket:
        await ask(socket, INITIALIZE)
        again = await ask(socket, {**INITIALIZE, "id": 1})
        assert again["error"] == {"code": -32600, "message": "Initialize not allowed on existing connection"}
        assert "result" in await ask(socket, request("session/new", 2, cwd="/", mcpServers=[]))


@pytest.mark.parametrize(("junk", "code"), [("{bad", -32700), ("[]", -32600), ("42", -32600), ("null", -32600)])
async def test_malformed_text_is_answered_and_the_socket_stays_open(serve, junk, code):
    site = await serve()
    async with opened(site) as socket:
        await ask(socket, INITIALIZE)
        await socket.send(junk)
        assert (await answer_to(socket, None))["error"]["code"] == code
        assert "result" in await ask(socket, request("session/new", 2, cwd="/", mcpServers=[]))


async def test_a_lone_surrogate_in_the_id_of_a_broken_message_harms_nothing(serve):
    site = await serve()
    async with opened(site) as socket:
        await ask(socket, INITIALIZE)
        await socket.send(r'{"jsonrpc":"2.0","id":"\ud800","method":1}')
        assert (await answer_to(socket, "\ufffd"))["error"]["code"] == -32600
        assert "result" in await ask(socket, request("session/new", 2, cwd="/", mcpServers=[]))


async def test_an_id_of_more_than_1024_characters_is_answered(serve):
    site = await serve()
    async with opened(site) as socket:
        await ask(socket, INITIALIZE)
        await socket.send(json.dumps(request("_x", "i" * 1025)))
        assert (await answer_to(socket, None))["error"]["code"] == -32600


async def test_binary_frames_are_ignored(serve):
    site = await serve()
    async with opened(site) as socket:
        await socket.send(json.dumps(INITIALIZE).encode())
        await ask(socket, INITIALIZE)
        await socket.send(b"\xff")
        assert "result" in await ask(socket, request("session/new", 2, cwd="/", mcpServers=[]))


async def test_a_message_over_the_limit_counted_in_utf_8_is_1009(serve):
    site = await serve(max_message_size=1000)
    for text, fits in (("ä" * 300, True), ("ä" * 500, False)):
        async with opened(site) as socket:
            await ask(socket, INITIALIZE)
            message = json.dumps(request("_x", 1, text=text), ensure_ascii=False)
            assert len(message) < 1000
            await socket.send(message)
            assert (await answer_to(socket, 1) is not None) if fits else (await closing(socket) == 1009)


async def test_no_frame_either_way_is_1001(serve):
    site = await serve(web_socket_idle_timeout=0.2)
    async with opened(site) as socket:
        await ask(socket, INITIALIZE)
        assert await closing(socket) == 1001


async def test_frames_keep_a_socket_open(serve):
    site = await serve(web_socket_idle_timeout=0.4)
    async with opened(site) as socket, opened(site) as silent, anyio.create_task_group() as tasks:
        await ask(socket, INITIALIZE)
        await ask(silent, INITIALIZE)
        silent_closed = anyio.Event()

        async def watch():
            assert await closing(silent) == 1001
            silent_closed.set()

        tasks.start_soon(watch)
        with anyio.fail_after(10):
            for number in itertools.count(1):
                await ask(socket, request("_x", number))
                if silent_closed.is_set():
                    break
        await ask(socket, request("_x", "last"))


async def test_the_shutdown_is_1001_behind_the_answers_of_cancelled_turns(serve):
    site = await serve()
    async with opened(site) as socket, opened(site) as silent:
        await ask(socket, INITIALIZE)
        session = (await ask(socket, request("session/new", 1, cwd="/", mcpServers=[])))["result"]["sessionId"]
        await socket.send(json.dumps(prompt(session, "finally", 2)))
        await socket.recv()
        site.endpoint.begin_shutdown()
        assert (await answer_to(socket, 2))["result"]["stopReason"] == "cancelled"
        assert await closing(socket) == 1001
        assert await closing(silent) == 1001
    with anyio.fail_after(5):
        await site.endpoint.wait_ended()


async def test_an_agent_that_cannot_be_created_is_1011(serve, caplog):
    def factory(transport, caller):
        raise RuntimeError("the database is down")

    site = await serve(factory=factory)
    async with opened(site) as socket:
        assert await closing(socket) == 1011
    assert "the database is down" in caplog.text


async def test_a_foreign_origin_is_refused_with_403(serve):
    site = await serve()
    with pytest.raises(InvalidStatus) as refused:
        async with opened(site, origin="http://evil.example"):
            pass
    assert refused.value.response.status_code == 403
    assert refused.value.response.body == b"Origin not allowed"


async def test_a_handshake_during_the_shutdown_is_refused_with_503(serve, bound):
    site = await serve()
    async with opened(site) as socket:
        await ask(socket, INITIALIZE)
    site.endpoint.begin_shutdown()
    with bound():
        await site.endpoint.wait_ended()
    with pytest.raises(InvalidStatus) as refused:
        async with opened(site):
            pass
    assert refused.value.response.status_code == 503


async def test_the_subprotocol_is_echoed_when_it_is_offered(serve):
    site = await serve()
    async with opened(site, subprotocols=["bearer.secret", "acp"]) as socket:
        assert socket.subprotocol == "acp"
    async with opened(site, subprotocols=["bearer.secret"]) as socket:
        assert socket.subprotocol is None


async def test_a_socket_that_closes_cancels_its_turn_and_leaves_nothing(serve, bound):
    site = await serve()
    async with opened(site) as socket:
        await ask(socket, INITIALIZE)
        session = (await ask(socket, request("session/new", 1, cwd="/", mcpServers=[])))["result"]["sessionId"]
        await socket.send(json.dumps(prompt(session, "wait_for_cancel", 2)))
        await socket.recv()
        assert (site.endpoint.active_connection_count, site.endpoint.active_turn_count) == (1, 1)
    with bound():
        while len(site.endpoint._run.service.connections):
            await anyio.sleep(0.005)


async def test_200_senders_at_once_keep_every_frame_whole_and_each_in_its_order(serve):
    site = await serve()
    async with opened(site) as socket:
        await ask(socket, INITIALIZE)
        sessions = [
            (await ask(socket, request("session/new", f"new {n}", cwd="/", mcpServers=[])))["result"]["sessionId"]
            for n in range(20)
        ]
        for session in sessions:
            await socket.send(json.dumps(prompt(session, "stream:10", session)))
        counts = dict.fromkeys(sessions, 0)
        answered = set()
        with anyio.fail_after(20):
            while len(answered) < len(sessions):
                message = json.loads(await socket.recv())
                if "method" in message:
                    assert message["params"]["sessionId"] not in answered
                    counts[message["params"]["sessionId"]] += 1
                else:
                    answered.add(message["id"])
    assert set(counts.values()) == {10}


# Driven without a server: what a peer cannot be made to do on purpose.


async def accepted(driver):
    call = driver.open({**scope_of(), "type": "websocket", "scheme": "ws"}, {"type": "websocket.connect"})
    with anyio.fail_after(5):
        await call.until(lambda: len(call.sent) == 1)
    assert call.sent[0]["type"] == "websocket.accept"
    return call


def text(message):
    return {"type": "websocket.receive", "text": json.dumps(message)}


def received(call):
    return [json.loads(message["text"]) for message in call.sent if message["type"] == "websocket.send"]


async def conversing(driver):
    call = await accepted(driver)
    call.bring(text(INITIALIZE))
    call.bring(text(request("session/new", 1, cwd="/", mcpServers=[])))
    with anyio.fail_after(5):
        await call.until(lambda: len(received(call)) == 2)
    return call, received(call)[1]["result"]["sessionId"]


async def test_a_send_that_fails_ends_the_socket_and_its_turn(drive, bound):
    driver = await drive()
    call, session = await conversing(driver)
    call.fails_with = OSError("gone")
    call.bring(text(prompt(session, "wait_for_cancel", 2)))
    with bound():
        await call.ended.wait()
        while len(driver.app._run.service.connections):
            await anyio.sleep(0.005)


async def test_a_peer_that_does_not_read_is_1011(drive, bound, monkeypatch):
    monkeypatch.setattr(websocket, "STALL_LIMIT", 0.05)
    driver = await drive()
    call, session = await conversing(driver)
    call.hold = True
    call.bring(text(prompt(session, "stream:5", 2)))
    (served,) = driver.app._run.service.connections
    with bound():
        while served.transport.closing_code is None:
            await anyio.sleep(0.005)
        call.release()
        await call.ended.wait()
    assert call.sent[-1]["type"] == "websocket.close"
    assert call.sent[-1]["code"] == 1011


async def test_too_many_pending_frames_are_1011(drive, bound):
    driver = await drive(max_web_socket_pending_frames=10)
    call, _ = await conversing(driver)
    call.hold = True
    for number in range(20):
        call.bring(text(request("_x", number)))
    (served,) = driver.app._run.service.connections
    with bound():
        while served.transport.closing_code is None:
            await anyio.sleep(0.005)
        call.release()
        await call.ended.wait()
    assert (call.sent[-1]["type"], call.sent[-1]["code"]) == ("websocket.close", 1011)


async def test_a_slow_peer_slows_the_turn_down_and_loses_nothing(drive, bound):
    driver = await drive(max_web_socket_pending_frames=20)
    call, session = await conversing(driver)
    call.hold = True
    call.bring(text(prompt(session, "stream:500", 2)))
    for _ in range(50):
        await anyio.lowlevel.checkpoint()
    call.release()
    with bound(10):
        await call.until(lambda: received(call)[-1].get("id") == 2)
    assert len(received(call)) == 503


@pytest.mark.parametrize("refused", [False, True])
async def test_a_peer_that_leaves_during_its_handshake_is_no_error_of_the_server(drive, bound, refused, caplog):
    driver = await drive()
    headers = {"origin": "http://evil.example"} if refused else {}
    scope = {**scope_of("GET", headers), "type": "websocket", "extensions": {"websocket.http.response": {}}}
    call = Call(driver.app, scope, [{"type": "websocket.connect"}])
    call.fails_with = OSError("gone")
    with bound():
        await call.run()
    assert call.sent == []
    assert not [record for record in caplog.records if record.levelname in ("ERROR", "CRITICAL")]


async def test_a_handshake_a_server_cannot_answer_with_a_status_is_closed(drive):
    driver = await drive()
    scope = {**scope_of(headers={"origin": "http://evil.example"}), "type": "websocket", "scheme": "ws"}
    call = driver.open(scope, {"type": "websocket.connect"})
    with anyio.fail_after(5):
        await call.ended.wait()
    assert [message["type"] for message in call.sent] == ["websocket.close"]
