"""Every row of the table of statuses, asked of a real server."""

import json
from functools import partial

import anyio
import pytest

from acp_integration import PromptContext, acp_agent, on
from tests.endpoint.driver import INITIALIZE, ids, prompt, request

JSON = {"content-type": "application/json"}
STREAM = {"accept": "text/event-stream"}


async def initialize(site, **headers):
    answer = await site.http.post("/acp", json=INITIALIZE, headers=headers)
    assert answer.status_code == 200
    return answer.headers["acp-connection-id"]


async def read_events(site, connection, count, session=None):
    events = []
    async with site.http.stream("GET", "/acp", headers={**STREAM, **ids(connection, session)}) as stream:
        assert stream.status_code == 200
        async for line in stream.aiter_lines():
            if line.startswith("data: "):
                events.append(json.loads(line[6:]))
            if len(events) == count:
                return events
    raise AssertionError(f"the stream ended after {events}")


@pytest.mark.parametrize("method", ["POST", "GET", "DELETE", "PUT", "OPTIONS"])
async def test_a_foreign_origin_is_403(serve, method):
    site = await serve()
    answer = await site.http.request(method, "/acp", headers={"origin": "http://evil.example"}, content=b"")
    assert (answer.status_code, answer.text) == (403, "Origin not allowed")
    assert answer.headers["content-type"].startswith("text/plain")


@pytest.mark.parametrize("method", ["PUT", "PATCH", "OPTIONS", "HEAD"])
async def test_another_method_is_405_and_says_which_are_allowed(serve, method):
    site = await serve()
    answer = await site.http.request(method, "/acp")
    assert answer.status_code == 405
    assert answer.headers["allow"] == "GET, POST, DELETE"


@pytest.mark.parametrize("kind", ["text/plain", "application/jsonpwned", "application/json-rpc", ""])
async def test_a_post_of_another_media_type_is_415(serve, kind):
    site = await serve()
    answer = await site.http.post("/acp", content=b"{}", headers={"content-type": kind})
    assert answer.status_code == 415


async def test_a_compressed_post_is_415(serve):
    site = await serve()
    answer = await site.http.post("/acp", content=b"{}", headers={**JSON, "content-encoding": "gzip"})
    assert answer.status_code == 415


@pytest.mark.parametrize("kind", ["application/json", "APPLICATION/JSON", "application/json; charset=utf-8"])
async def test_the_media_type_is_compared_without_case_and_parameters(serve, kind):
    site = await serve()
    answer = await site.http.post("/acp", content=json.dumps(INITIALIZE), headers={"content-type": kind})
    assert answer.status_code == 200


async def test_a_body_over_the_limit_is_413_and_names_the_setting(serve):
    site = await serve(max_message_size=1000)
    answer = await site.http.post("/acp", content=b" " * 1001, headers=JSON)
    assert answer.status_code == 413
    assert answer.text == "POST body exceeds 1000 bytes (acp.agent.max-message-size)"
    assert (await site.http.post("/acp", content=b" " * 1000, headers=JSON)).status_code == 400


async def test_the_post_limit_may_only_lower_the_message_limit(serve):
    lower = await serve(max_message_size=1000, max_post_body_size=500)
    answer = await lower.http.post("/acp", content=b" " * 501, headers=JSON)
    assert answer.text == "POST body exceeds 500 bytes (acp.agent.transport.http.max-post-body-size)"
    higher = await serve(max_message_size=1000, max_post_body_size=5000)
    assert (await higher.http.post("/acp", content=b" " * 1001, headers=JSON)).status_code == 413


async def test_a_chunked_body_over_the_limit_is_413(serve):
    site = await serve(max_message_size=1000)

    async def chunks():
        for _ in range(100):
            yield b" " * 100

    assert (await site.http.post("/acp", content=chunks(), headers=JSON)).status_code == 413


@pytest.mark.parametrize("body", [b"[]", b' [{"jsonrpc":"2.0","id":1,"method":"initialize","params":{}}]'])
async def test_a_batch_is_501(serve, body):
    site = await serve()
    assert (await site.http.post("/acp", content=body, headers=JSON)).status_code == 501


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"42",
        b'"text"',
        b"null",
        b"\xff\xfe",
        b"[1,",
        b"[" * 100_000,
        b'{"a":' * 100_000,
        b'{"jsonrpc":"2.0"}',
        b"{}",
    ],
)
async def test_what_is_no_message_is_400_without_a_connection(serve, body):
    site = await serve()
    answer = await site.http.post("/acp", content=body, headers=JSON)
    assert (answer.status_code, answer.text) == (400, "Invalid JSON-RPC")


@pytest.mark.parametrize("body", [b"", b"{", b"42", b"null", b"\xff"])
async def test_what_is_no_object_is_400_on_a_connection_too(serve, body):
    site = await serve()
    connection = await initialize(site)
    answer = await site.http.post("/acp", content=body, headers={**JSON, **ids(connection, None)})
    assert (answer.status_code, answer.text) == (400, "Invalid JSON-RPC")


async def test_an_object_that_is_no_request_is_202_and_answered_on_the_connection_stream(serve, bound):
    site = await serve()
    connection = await initialize(site)
    answer = await site.http.post("/acp", json={"jsonrpc": "2.0", "id": 7}, headers=ids(connection, None))
    assert (answer.status_code, answer.content) == (202, b"")
    with bound():
        (event,) = await read_events(site, connection, 1)
    assert event["id"] == 7
    assert event["error"]["code"] == -32600


async def test_initialize_on_a_connection_is_400(serve):
    site = await serve()
    connection = await initialize(site)
    answer = await site.http.post("/acp", json=INITIALIZE, headers=ids(connection, None))
    assert answer.status_code == 400


async def test_initialize_without_an_id_is_400(serve):
    site = await serve()
    answer = await site.http.post("/acp", json={"jsonrpc": "2.0", "method": "initialize", "params": {}})
    assert answer.status_code == 400


async def test_everything_is_503_once_the_shutdown_has_begun(serve, bound):
    site = await serve()
    connection = await initialize(site)
    site.endpoint.begin_shutdown()
    with bound():
        await site.endpoint.wait_ended()
    answers = [
        await site.http.post("/acp", json=INITIALIZE),
        await site.http.post("/acp", json=request("session/new"), headers=ids(connection, None)),
        await site.http.get("/acp", headers={**STREAM, **ids(connection, None)}),
        await site.http.delete("/acp", headers=ids(connection, None)),
    ]
    assert {(answer.status_code, answer.text) for answer in answers} == {(503, "ACP endpoint is shutting down")}


class Mute:
    """An agent that never answers, until it is stopped or nobody can read it."""

    active_turns = 0
    open_sessions = 0

    def __init__(self):
        self.started = anyio.Event()
        self.stopped = anyio.Event()

    def factory(self, transport, caller):
        self.transport = transport
        return self

    async def serve(self):
        self.started.set()
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._stop_when_broken)
            await self.stopped.wait()
            tasks.cancel_scope.cancel()
        await self.transport.aclose()

    async def _stop_when_broken(self):
        await self.transport.wait_broken()
        self.stop()

    def stop(self):
        self.stopped.set()


async def test_an_initialize_in_flight_is_503_when_the_shutdown_begins(serve, bound):
    agent = Mute()
    site = await serve(factory=agent.factory)
    with bound():
        async with anyio.create_task_group() as tasks:

            async def close_when_started():
                await agent.started.wait()
                site.endpoint.begin_shutdown()

            tasks.start_soon(close_when_started)
            answer = await site.http.post("/acp", json=INITIALIZE)
        await site.endpoint.wait_ended()
    assert (answer.status_code, answer.text) == (503, "ACP endpoint is shutting down")


async def test_an_initialize_without_an_answer_in_time_is_500_and_leaves_nothing(serve, bound):
    site = await serve(factory=Mute().factory, initialize_timeout=0.1)
    with bound():
        answer = await site.http.post("/acp", json=INITIALIZE)
    assert (answer.status_code, answer.text) == (500, "initialize failed")
    await no_connection_left(site, bound)


async def test_a_client_that_leaves_while_it_initializes_leaves_nothing(serve, bound):
    agent = Mute()
    site = await serve(factory=agent.factory)
    with bound():
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(partial(site.http.post, "/acp", json=INITIALIZE))
            await agent.started.wait()
            tasks.cancel_scope.cancel()
        await agent.stopped.wait()
    await no_connection_left(site, bound)


async def test_an_agent_that_cannot_be_created_is_500_and_logged(serve, caplog):
    def factory(transport, caller):
        raise RuntimeError("the database is down")

    site = await serve(factory=factory)
    answer = await site.http.post("/acp", json=INITIALIZE)
    assert (answer.status_code, answer.text) == (500, "initialize failed")
    assert "the database is down" in caplog.text


async def test_an_unexpected_failure_is_500_and_logged(serve, caplog, monkeypatch):
    site = await serve()
    await initialize(site)

    def broken(scope):
        raise RuntimeError("the text of an error")

    monkeypatch.setattr(site.endpoint._run.service.admission, "admit", broken)
    answer = await site.http.post("/acp", json=INITIALIZE)
    assert (answer.status_code, answer.text) == (500, "internal error")
    assert "the text of an error" in caplog.text


async def test_initialize_is_200_with_its_answer_and_a_connection_nobody_can_guess(serve):
    site = await serve()
    answers = [await site.http.post("/acp", json=INITIALIZE) for _ in range(2)]
    assert [answer.status_code for answer in answers] == [200, 200]
    assert answers[0].headers["content-type"] == "application/json"
    assert answers[0].json()["id"] == 0
    assert answers[0].json()["result"]["protocolVersion"] == 1
    workers, secrets = zip(*(answer.headers["acp-connection-id"].split(".") for answer in answers), strict=True)
    assert len(set(workers)) == 1
    assert len(set(secrets)) == 2
    assert {len(secret) for secret in secrets} == {32}
    assert site.endpoint.active_connection_count == 2


async def test_an_initialize_that_fails_is_answered_and_leaves_nothing(serve, bound):
    site = await serve()
    answer = await site.http.post("/acp", json=request("initialize", protocolVersion="one"))
    assert answer.status_code == 200
    assert answer.json()["error"]["code"] == -32602
    assert "acp-connection-id" not in answer.headers
    await no_connection_left(site, bound)


@pytest.mark.parametrize("headers", [{}, {"acp-connection-id": ""}])
async def test_everything_else_without_a_connection_is_400(serve, headers):
    site = await serve()
    answers = [
        await site.http.post("/acp", json=request("session/new", cwd="/"), headers=headers),
        await site.http.get("/acp", headers={**STREAM, **headers}),
        await site.http.delete("/acp", headers=headers),
    ]
    assert [answer.status_code for answer in answers] == [400] * 3
    assert all(answer.text for answer in answers)


async def test_an_unknown_connection_is_404_and_empty(serve):
    site = await serve()
    headers = ids("nobody", None)
    answers = [
        await site.http.post("/acp", json=request("session/new", cwd="/"), headers=headers),
        await site.http.post("/acp", json={"jsonrpc": "2.0"}, headers=headers),
        await site.http.get("/acp", headers={**STREAM, **headers}),
        await site.http.delete("/acp", headers=headers),
    ]
    assert [(answer.status_code, answer.content) for answer in answers] == [(404, b"")] * 4


async def test_a_connection_of_another_worker_is_404_and_says_so_once_in_the_log(serve, caplog):
    site = await serve()
    answer = await site.http.post("/acp", json=INITIALIZE)
    own_worker = answer.headers["acp-connection-id"].partition(".")[0]
    other_worker = f"{'0' * 8}{own_worker[8:]}"  # the end tells the endpoint, which has to be the same
    for _ in range(2):
        answer = await site.http.delete("/acp", headers=ids(f"{other_worker}.{'1' * 32}", None))
        assert answer.status_code == 404
        assert "another worker" in answer.text
    assert caplog.text.count("named a connection of worker") == 1


@pytest.mark.parametrize(
    "method", ["session/prompt", "session/set_mode", "session/set_config_option", "session/cancel", "session/close"]
)
async def test_a_message_of_a_session_without_its_header_is_400(serve, method):
    site = await serve()
    connection = await initialize(site)
    answer = await site.http.post("/acp", json=request(method, sessionId="s"), headers=ids(connection, None))
    assert answer.status_code == 400
    assert "Acp-Session-Id" in answer.text


@pytest.mark.parametrize("method", ["session/prompt", "session/load", "session/delete", "_ext"])
async def test_a_header_that_names_another_session_is_400(serve, method):
    site = await serve()
    connection = await initialize(site)
    answer = await site.http.post("/acp", json=request(method, sessionId="a"), headers=ids(connection, "b"))
    assert answer.status_code == 400
    assert "different sessions" in answer.text


async def test_an_answer_on_the_wrong_session_is_400_and_one_without_a_header_is_accepted(serve, bound):
    site = await serve()
    connection = await initialize(site)
    await site.http.post("/acp", json=request("session/new", cwd="/", mcpServers=[]), headers=ids(connection, None))
    with bound():
        session = (await read_events(site, connection, 1))[0]["result"]["sessionId"]
        await site.http.post("/acp", json=prompt(session, "perm", 5), headers=ids(connection, session))
        *_, question = await read_events(site, connection, 2, session)
    assert question["method"] == "session/request_permission"
    chosen = {
        "jsonrpc": "2.0",
        "id": question["id"],
        "result": {"outcome": {"outcome": "selected", "optionId": "y"}},
    }
    wrong = await site.http.post("/acp", json=chosen, headers=ids(connection, "other"))
    expected = f"Response id {question['id']} arrived on other but expected {session}"
    assert (wrong.status_code, wrong.text) == (400, expected)
    assert (await site.http.post("/acp", json=chosen, headers=ids(connection, None))).status_code == 202
    with bound():
        *_, answer = await read_events(site, connection, 3, session)
    assert answer["result"]["stopReason"] == "end_turn"


async def test_an_answer_nobody_waits_for_is_202(serve, caplog):
    site = await serve()
    connection = await initialize(site)
    unknown = {"jsonrpc": "2.0", "id": 99, "result": {}}
    assert (await site.http.post("/acp", json=unknown, headers=ids(connection, None))).status_code == 202
    assert "nobody waits for" in caplog.text


async def test_one_provisional_session_too_many_is_404_and_says_so(serve):
    site = await serve(max_provisional_sessions=2)
    connection = await initialize(site)
    async with (
        site.http.stream("GET", "/acp", headers={**STREAM, **ids(connection, "a")}) as first,
        site.http.stream("GET", "/acp", headers={**STREAM, **ids(connection, "b")}) as second,
    ):
        assert (first.status_code, second.status_code) == (200, 200)
        third = await site.http.get("/acp", headers={**STREAM, **ids(connection, "c")})
        assert third.status_code == 404
        assert third.text == "Too many provisional sessions on this connection (limit 2)"


@pytest.mark.parametrize("accept", ["application/json", "text/html", "text/event-stream;q=0", "*/*;q=0.0"])
async def test_a_get_that_accepts_no_event_stream_is_406_before_its_header_is_looked_at(serve, accept):
    site = await serve()
    assert (await site.http.get("/acp", headers={"accept": accept})).status_code == 406


@pytest.mark.parametrize("accept", ["*/*", "text/*", "text/html, text/event-stream;q=0.5", "TEXT/EVENT-STREAM"])
async def test_whatever_includes_an_event_stream_is_accepted(serve, accept):
    site = await serve()
    connection = await initialize(site)
    async with site.http.stream("GET", "/acp", headers={"accept": accept, **ids(connection, None)}) as stream:
        assert stream.status_code == 200


async def test_a_stream_has_its_headers_and_says_at_once_that_it_is_connected(serve, bound):
    site = await serve()
    connection = await initialize(site)
    async with site.http.stream("GET", "/acp", headers={**STREAM, **ids(connection, "s")}) as stream:
        headers = stream.headers
        with bound():
            first = await anext(stream.aiter_bytes())
    assert first == b": connected\n\n"
    assert headers["content-type"] == "text/event-stream"
    assert headers["cache-control"] == "no-cache"
    assert headers["x-accel-buffering"] == "no"
    assert headers["acp-connection-id"] == connection
    assert headers["acp-session-id"] == "s"
    assert "connection" not in headers
    assert "content-encoding" not in headers


async def test_delete_is_202_then_404_and_cancels_the_prompts_in_flight(serve, bound):
    cancelled = anyio.Event()
    started = anyio.Event()

    @acp_agent(name="waiting")
    class Waiting:
        @on.prompt
        async def answer(self, turn: PromptContext) -> None:
            started.set()
            try:
                await anyio.sleep_forever()
            finally:
                cancelled.set()

    site = await serve(Waiting)
    connection = await initialize(site)
    await site.http.post("/acp", json=request("session/new", cwd="/", mcpServers=[]), headers=ids(connection, None))
    with bound():
        session = (await read_events(site, connection, 1))[0]["result"]["sessionId"]
        await site.http.post("/acp", json=prompt(session, "go"), headers=ids(connection, session))
        await started.wait()
    statuses = [(await site.http.delete("/acp", headers=ids(connection, None))).status_code for _ in range(2)]
    assert statuses == [202, 404]
    with bound():
        await cancelled.wait()
    await no_connection_left(site, bound)


@pytest.mark.parametrize("name", ["acp-connection-id", "acp-session-id", "last-event-id"])
async def test_an_id_of_more_than_1024_characters_is_400(serve, name):
    site = await serve()
    connection = await initialize(site)
    headers = {**STREAM, **ids(connection, None), name: "x" * 1025}
    assert (await site.http.get("/acp", headers=headers)).status_code == 400


@pytest.mark.parametrize(
    "message", [request("_x", "i" * 1025), request("_x", 1, sessionId="s" * 1025), {**INITIALIZE, "id": "i" * 1025}]
)
async def test_an_id_in_a_message_of_more_than_1024_characters_is_400(serve, message):
    site = await serve()
    connection = None if message["method"] == "initialize" else await initialize(site)
    answer = await site.http.post("/acp", json=message, headers=ids(connection, None))
    assert answer.status_code == 400
    assert "1024" in answer.text


async def test_the_path_answers_with_and_without_a_slash_and_no_other_does(serve):
    site = await serve()
    assert (await site.http.post("/acp/", json=INITIALIZE)).status_code == 200
    assert (await site.http.post("/acp2", json=INITIALIZE)).status_code == 404
    assert (await site.http.post("/", json=INITIALIZE)).status_code == 404


async def test_the_health_answer_turns_to_503_with_the_shutdown(serve, bound):
    site = await serve()
    healthy = await site.http.get("/acp/health")
    assert (healthy.status_code, healthy.json()) == (200, {"status": "ok"})
    site.endpoint.begin_shutdown()
    with bound():
        await site.endpoint.wait_ended()
    assert (await site.http.get("/acp/health")).status_code == 503


async def no_connection_left(site, bound):
    with bound():
        while len(site.endpoint._run.service.connections):
            await anyio.sleep(0.005)
