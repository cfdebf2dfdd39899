"""Thousands of requests and frames that are broken in every way: no 500, no dead connection, nothing left behind."""

import json
import random

import anyio
import pytest

from tests.endpoint.driver import INITIALIZE, ids, prompt, request, scope_of

SEED = 20261130
ANSWERS = {200, 202, 400, 403, 404, 405, 406, 413, 415, 501}
METHODS = ["POST"] * 6 + ["GET", "DELETE", "PUT", "HEAD", "OPTIONS", "BREW", ""]
VALUES = [
    "",
    " ",
    "\x00",
    "x" * 1024,
    "x" * 1025,
    "\xff\xfe",
    "null",
    "-1",
    "0",
    "1" * 30,
    "*/*",
    ",",
    ";",
    "a, b",
    '"',
]
NAMES = [
    "content-type",
    "accept",
    "acp-connection-id",
    "acp-session-id",
    "last-event-id",
    "content-length",
    "origin",
    "host",
    "content-encoding",
]
WORDS = [
    None,
    True,
    0,
    -1,
    2**63,
    2**64,
    1.5,
    "",
    "s",
    "\ud800",
    "x" * 2000,
    [],
    [[]],
    {},
    {"sessionId": 1},
    {"a": {"b": [None]}},
]


class Mutator:
    def __init__(self, seed):
        self.chance = random.Random(seed)

    def message(self, session):
        chance = self.chance
        message = chance.choice(
            [
                request("session/new", 1, cwd="/", mcpServers=[]),
                prompt(session, "echo", 2),
                request("session/load", 3, sessionId=session, cwd="/", mcpServers=[]),
                request("session/close", 4, sessionId="other"),
                {"jsonrpc": "2.0", "method": "session/cancel", "params": {"sessionId": session}},
                {"jsonrpc": "2.0", "method": "$/cancel_request", "params": {"requestId": 1}},
                {"jsonrpc": "2.0", "id": 5, "result": {}},
                {"jsonrpc": "2.0", "id": 6, "error": {"code": 1, "message": ""}},
                request("_x", 7),
            ]
        )
        for _ in range(chance.randrange(3)):
            holder = chance.choice([message, message.get("params") or message])
            if isinstance(holder, dict) and holder:
                holder[chance.choice([*holder, "id", "method", "params", "sessionId"])] = chance.choice(WORDS)
        return message

    def bytes(self, session):
        chance = self.chance
        body = bytearray(json.dumps(self.message(session)).encode("utf-8", "surrogatepass"))
        for _ in range(chance.randrange(3)):
            place = chance.randrange(len(body))
            kind = chance.randrange(4)
            if kind == 0:
                body[place] = chance.randrange(256)
            elif kind == 1:
                del body[place:]
                body = body or bytearray(b"{")
            elif kind == 2:
                body[place:place] = bytes(chance.randrange(256) for _ in range(3))
            else:
                body[:0] = b"[" * chance.choice([1, 5000])
        return bytes(body)

    def headers(self, connection, session):
        chance = self.chance
        headers = {"content-type": "application/json", "accept": "text/event-stream", **ids(connection, session)}
        for _ in range(chance.randrange(3)):
            headers[chance.choice(NAMES)] = chance.choice(VALUES)
        if chance.random() < 0.1:
            headers.pop(chance.choice([*headers]))
        return headers


async def test_five_thousand_mutated_requests(drive):
    mutate = Mutator(SEED)
    driver = await drive(max_message_size=100_000, connection_idle_timeout=None, initialize_timeout=5)
    connection, dead = await driver.connection(), 0
    session = await driver.session(connection)
    for _ in range(5000):
        method = mutate.chance.choice(METHODS)
        body = {"type": "http.request", "body": mutate.bytes(session), "more_body": False}
        call = driver.open(scope_of(method, mutate.headers(connection, session)), body)
        with anyio.fail_after(10):
            await call.until(lambda call=call: call.status is not None)
            if call.status == 200 and method == "GET":
                call.disconnect()
            await call.ended.wait()
        assert call.status in ANSWERS, call.body
        if method == "DELETE" and call.status == 202:
            dead += 1
            connection = await driver.connection()
            session = await driver.session(connection)
    assert dead > 10
    assert await driver.session(connection)
    await only_these_are_left(driver, connection)


async def only_these_are_left(driver, *connections):
    service = driver.app._run.service
    with anyio.fail_after(10):
        while {served.id for served in service.connections} != set(connections):
            await anyio.sleep(0.01)
    assert not service._responses
    for served in service.connections:
        assert served.transport.streams.readers == 0
        assert len(served.transport._asked) < 10


async def test_a_thousand_mutated_frames_on_a_socket(drive):
    mutate = Mutator(SEED)
    driver = await drive(max_message_size=100_000)
    call = driver.open({**scope_of(), "type": "websocket"}, {"type": "websocket.connect"})
    call.bring({"type": "websocket.receive", "text": json.dumps(INITIALIZE)})
    for number in range(1000):
        text = mutate.bytes("s").decode("utf-8", "replace")
        call.bring({"type": "websocket.receive", "text": text})
        if number % 100 == 0:
            call.bring({"type": "websocket.receive", "bytes": b"\xff", "text": None})
    last = {"type": "websocket.receive", "text": json.dumps(request("session/new", "last", cwd="/", mcpServers=[]))}
    call.bring(last)
    with anyio.fail_after(20):
        await call.until(lambda: '"last"' in str(call.sent[-1:]))
    assert "sessionId" in call.sent[-1]["text"]


@pytest.mark.parametrize("count", [300])
async def test_mutated_bytes_over_a_real_socket(serve, count):
    mutate = Mutator(SEED)
    site = await serve(max_message_size=100_000)
    connection = (await site.http.post("/acp", json=INITIALIZE)).headers["acp-connection-id"]
    for _ in range(count):
        body = mutate.bytes("s")
        head = f"POST /acp HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nAcp-Connection-Id: {connection}\r\n"
        raw = bytearray(head.encode() + b"Content-Length: %d\r\n\r\n" % len(body) + body)
        for _ in range(mutate.chance.randrange(3)):
            raw[mutate.chance.randrange(len(raw))] = mutate.chance.randrange(256)
        await send_raw(site.port, bytes(raw))
    again = await site.http.post(
        "/acp", json=request("session/new", cwd="/", mcpServers=[]), headers=ids(connection, None)
    )
    assert again.status_code == 202


async def send_raw(port, raw):
    """Send bytes and hang up; whatever comes back must not be a failure of ours."""
    with anyio.fail_after(10):
        async with await anyio.connect_tcp("127.0.0.1", port) as stream:
            await stream.send(raw)
            await stream.send_eof()
            answer = b""
            try:
                async for chunk in stream:
                    answer += chunk
            except anyio.BrokenResourceError:
                pass
    assert not answer.startswith(b"HTTP/1.1 500")
