"""Workers of one server answer for each other's connections, as one worker would."""

import os
import tempfile
from contextlib import AsyncExitStack

import anyio
import pytest

from acp_integration import PromptContext, acp_agent, on
from acp_integration.assembly import AgentBuilder
from acp_integration.backplane import group, link, unix
from acp_integration.caller import Caller
from acp_integration.endpoint import CALLER_KEY, AcpEndpoint, forwarded, forwarding, workers
from acp_integration.errors import ConfigurationError
from acp_integration.options import BackplaneOptions, EndpointOptions
from examples.agents import ProbeAgent
from tests.endpoint.driver import INITIALIZE, driving, ids, prompt, request

NO_SUCH = "0" * 32


@pytest.fixture
async def worker():
    """``driver = await worker(**options)``: one more worker, in this process, that meets the others."""
    with tempfile.TemporaryDirectory(prefix="acp-test-") as meeting_place:
        async with AsyncExitStack() as stack:

            async def start(agent=ProbeAgent, place="", **options):
                meeting = BackplaneOptions(url=f"unix:{meeting_place}")
                factory = AgentBuilder(agent).build_factory()
                endpoint = AcpEndpoint(factory, EndpointOptions(workers=meeting, **options), place=place)
                await stack.enter_async_context(endpoint.running())
                return await stack.enter_async_context(driving(endpoint))

            yield start


async def until(reached):
    with anyio.fail_after(10):
        while not reached():
            await anyio.sleep(0.005)


def name_of(driver):
    return driver.app._run.service.connections.worker


async def test_a_conversation_whose_every_request_reaches_another_worker(worker):
    owner, edge = await worker(), await worker()
    connection = await owner.connection()
    session = await edge.session(connection)
    stream = await edge.stream(connection, session)
    assert stream.status == 200
    assert stream.headers["content-type"] == "text/event-stream"
    assert stream.headers["acp-connection-id"] == connection
    assert stream.headers["acp-session-id"] == session
    for number in range(20):
        assert (await edge.post(prompt(session, "stream:30", number), connection, session)).status == 202
    await stream.until(lambda: 19 in stream.answers)
    assert len(stream.events) == 20 * 31
    assert [identifier for identifier, _ in stream.events] == sorted(identifier for identifier, _ in stream.events)
    assert edge.app.active_connection_count == 0
    assert owner.app.active_connection_count == 1


@pytest.mark.parametrize("far", [False, True], ids=["same worker", "other worker"])
async def test_every_refusal_is_the_one_of_a_single_worker(worker, far):
    owner = await worker(max_message_size=4096, max_provisional_sessions=1)
    driver = await worker(max_message_size=4096, max_provisional_sessions=1) if far else owner
    connection = await owner.connection()
    unknown = f"{name_of(owner)}.{NO_SUCH}"
    json = {"content-type": "application/json"}
    asks = {"accept": "text/event-stream"}
    big = b'{"jsonrpc":"2.0","method":"x","params":"%b"}' % (b"x" * 4096)
    await driver.stream(connection, "a provisional session")
    refused = [
        await driver.request("POST", {"content-type": "text/plain", **ids(connection, None)}, b"{}"),
        await driver.post(b"{", connection),
        await driver.post(b"[]", connection),
        await driver.post(INITIALIZE, connection),
        await driver.post(big, connection),
        await driver.post(prompt("s", "hi", 1), connection),
        await driver.post(prompt("s", "hi", 1), connection, "another"),
        await driver.post(request("x", "i" * 1025), connection),
        await driver.post(request("x", 1), unknown),
        await driver.request("GET", {"accept": "text/html", **ids(connection, None)}),
        await driver.request("GET", {**asks, **ids(unknown, None)}),
        await driver.request("GET", {**asks, **ids(connection, "s" * 1025)}),
        await driver.request("GET", {**asks, **ids(connection, "provisional beyond the limit")}),
        await driver.request("DELETE", ids(unknown, None)),
        await driver.request("PUT", {**json, **ids(connection, None)}),
    ]
    assert [call.status for call in refused] == [
        415, 400, 501, 400, 413, 400, 400, 400, 404, 406, 404, 400, 404, 404, 405,
    ]  # fmt: skip
    assert (await driver.request("DELETE", ids(connection, None))).status == 202
    assert (await driver.post(request("x", 1), connection)).status == 404
    assert owner.app.active_connection_count == 0


async def test_a_peer_that_hangs_up_loses_nothing_and_the_next_stream_goes_on(worker):
    owner, edge = await worker(), await worker()
    connection = await owner.connection()
    session = await edge.session(connection)
    first = await edge.stream(connection, session)
    first.hold = True
    await edge.post(prompt(session, "stream:200", 1), connection, session)
    first.disconnect()
    first.release()
    await first.ended.wait()
    seen = first.events[-1][0] if first.events else 0
    second = await (await worker()).stream(connection, session, last_id=seen)
    await second.until(lambda: 1 in second.answers)
    numbers = [identifier for identifier, _ in first.events + second.events]
    assert numbers == sorted(set(numbers))
    assert len(numbers) == 201


async def test_a_stream_of_another_worker_takes_over(worker):
    owner, edge = await worker(), await worker()
    connection = await owner.connection()
    first = await edge.stream(connection)
    second = await owner.stream(connection)
    with anyio.fail_after(5):
        await first.ended.wait()
    await edge.post(request("session/new", 1, cwd="/", mcpServers=[]), connection)
    await second.until(lambda: 1 in second.answers)
    assert not first.events


async def test_a_slow_reader_on_another_worker_slows_the_turn_down_and_loses_nothing(worker):
    owner, edge = await worker(max_pending_sse_events=16), await worker()
    connection = await owner.connection()
    session = await edge.session(connection)
    stream = await edge.stream(connection, session)
    stream.hold = True
    await edge.post(prompt(session, "stream:400", 1), connection, session)
    for _ in range(200):
        await anyio.lowlevel.checkpoint()
    (served,) = owner.app._run.service.connections
    assert len(served.transport.streams.of(session)._unread) <= 64
    stream.release()
    await stream.until(lambda: 1 in stream.answers)
    assert len(stream.events) == 401


async def test_only_the_principal_crosses_and_another_one_is_404(worker):
    owner, edge = await worker(), await worker()
    ann, bob = ({CALLER_KEY: Caller(principal=name, user=object(), guarded=True)} for name in ("ann", "bob"))
    connection = await owner.connection(**ann)
    assert (await edge.post(request("session/list", 1), connection, **ann)).status == 202
    assert (await edge.post(request("session/list", 1), connection, **bob)).status == 404
    assert (await edge.post(request("session/list", 1), connection)).status == 404


async def test_another_endpoint_of_the_application_does_not_know_the_connection(worker, caplog):
    owner, same, other = await worker(), await worker(), await worker(place="other")
    connection = await owner.connection()
    assert (await same.post(request("session/list", 1), connection)).status == 202
    call = await other.post(request("session/list", 1), connection)
    assert (call.status, call.body) == (404, b"")


async def test_a_worker_that_has_ended_is_404_with_the_reason_and_one_line_in_the_log(worker, caplog):
    owner, edge = await worker(), await worker()
    connection = await owner.connection()
    assert (await edge.post(request("session/list", 1), connection)).status == 202
    await owner.app.aclose()
    for _ in range(3):
        call = await edge.post(request("session/list", 1), connection)
        assert (call.status, call.body.decode()) == (404, forwarding.GONE)
    assert caplog.text.count(f"Worker {name_of(owner)} has ended") == 1


async def test_the_end_of_a_worker_ends_its_streams_elsewhere(worker):
    owner, edge = await worker(), await worker()
    stream = await edge.stream(await owner.connection())
    owner.app.cut()
    with anyio.fail_after(10):
        await stream.ended.wait()
    assert not stream.sent[-1]["more_body"]


async def test_a_shutdown_ends_streams_of_other_workers_with_the_comment(worker):
    owner, edge = await worker(), await worker()
    at_edge = await edge.stream(await owner.connection())
    at_owner = await owner.stream(await edge.connection())
    with anyio.fail_after(5):
        await edge.app.aclose()
        await at_edge.ended.wait()
        await at_owner.ended.wait()
    assert at_edge.body.endswith(b": shutting down\n\n")
    assert at_owner.body.endswith(b": shutting down\n\n")
    assert owner.app.active_connection_count == 1


async def test_a_worker_that_is_silent_is_given_up(worker, monkeypatch):
    monkeypatch.setattr(workers, "LOOK_AGAIN_AFTER", 0.05)
    monkeypatch.setattr(link, "ANSWER_WITHIN", 0.05)
    monkeypatch.setattr(link, "BELIEVED_FOR", 0.0)
    owner, edge = await worker(), await worker()
    stream = await edge.stream(await owner.connection())
    monkeypatch.setattr(owner.app._run.workers, "_received", lambda *_: None)
    monkeypatch.setattr(link.Link, "answers", lambda _: _no())
    with anyio.fail_after(5):
        await stream.ended.wait()


async def _no():
    return False


async def test_more_requests_than_a_worker_answers_for_others_are_503(worker, monkeypatch):
    monkeypatch.setattr(forwarded, "CALLS_PER_CONNECTION", 1)
    owner, edge = await worker(max_connections=1), await worker()
    connection = await owner.connection()
    await edge.stream(connection)
    call = await edge.post(request("session/list", 1), connection)
    assert (call.status, call.headers["retry-after"]) == (503, "5")


async def test_nothing_of_a_request_is_left_when_it_has_ended(worker):
    owner, edge = await worker(), await worker()
    connection = await owner.connection()
    session = await edge.session(connection)
    stream = await edge.stream(connection, session)
    await edge.post(prompt(session, "hi", 1), connection, session)
    await stream.until(lambda: 1 in stream.answers)
    stream.disconnect()
    await until(lambda: not owner.app._run.workers._forwarded._peers)
    assert not edge.app._run.workers._forwarder._calls


async def test_requests_are_counted(worker):
    owner, edge = await worker(), await worker()
    connection = await owner.connection()
    await edge.session(connection)
    assert {name: edge.app.counters()[name] for name in ("connections", "sessions", "turns")} == {
        "connections": 0,
        "sessions": 0,
        "turns": 0,
    }
    assert owner.app.counters()["connections"] == owner.app.counters()["sessions"] == 1
    await until(lambda: owner.app.counters()["answered_for_workers"] == 2)
    assert edge.app.counters()["forwarded_requests"] == 2
    assert 0 < edge.app.counters()["forwarded_seconds"] < 60


async def test_the_answer_to_initialize_names_the_worker_to_load_balancers(worker):
    owner = await worker()
    call = await owner.post(INITIALIZE)
    assert call.headers["set-cookie"] == f"acp-worker={name_of(owner)}; Path=/; HttpOnly; SameSite=Lax"


@pytest.mark.parametrize("url", ["", "nonsense", "memory:x", "http://user:hush@host/", "redis://user:hush@host/0"])
def test_a_url_that_means_nothing_fails_at_once_and_shows_no_password(url):
    with pytest.raises(ConfigurationError, match=r"acp\.agent\.backplane\.") as failure:
        AcpEndpoint(AgentBuilder(ProbeAgent).build_factory(), EndpointOptions(workers=BackplaneOptions(url=url)))
    assert "hush" not in str(failure.value)


@pytest.mark.parametrize("key", [None, ""])
def test_hosts_need_a_key_to_prove_themselves_by(key):
    meeting = BackplaneOptions(url="redis://localhost/0", key=key)
    with pytest.raises(ConfigurationError, match=r"acp\.agent\.backplane\.key is missing"):
        AcpEndpoint(AgentBuilder(ProbeAgent).build_factory(), EndpointOptions(workers=meeting))


async def test_unix_alone_needs_a_server_that_made_this_process():
    options = EndpointOptions(workers=BackplaneOptions(url="unix:"))
    endpoint = AcpEndpoint(AgentBuilder(ProbeAgent).build_factory(), options)
    with pytest.raises(ConfigurationError, match="name a directory"):
        async with endpoint.running():
            pass
    async with driving(endpoint) as driver:
        assert (await driver.post(INITIALIZE)).status == 503


async def test_memory_stands_alone(drive):
    driver = await drive(workers=BackplaneOptions(url="memory:"))
    worker = name_of(driver)
    other = ("1" if worker[0] == "0" else "0") + worker[1:]
    call = await driver.post(request("x", 1), f"{other}.{NO_SUCH}")
    assert call.status == 404
    assert b"another worker" in call.body


async def test_a_place_without_room_fails_the_start_with_the_reason(monkeypatch):
    with tempfile.TemporaryDirectory(prefix="acp-test-") as meeting_place:
        monkeypatch.setattr(unix, "_listen", _no_room)
        options = EndpointOptions(workers=BackplaneOptions(url=f"unix:{meeting_place}"))
        endpoint = AcpEndpoint(AgentBuilder(ProbeAgent).build_factory(), options)
        with pytest.raises(OSError, match="no room"):
            async with endpoint.running():
                pass


async def test_workers_that_cannot_meet_by_themselves_serve_alone_and_say_so(monkeypatch, caplog):
    with tempfile.TemporaryDirectory(prefix="acp-test-") as home:
        monkeypatch.setenv("XDG_RUNTIME_DIR", home)
        monkeypatch.setattr(group, "server_process", os.getpid)
        monkeypatch.setattr(unix, "_listen", _no_room)
        endpoint = AcpEndpoint(AgentBuilder(ProbeAgent).build_factory(), EndpointOptions())
        async with endpoint.running(), driving(endpoint) as driver:
            assert (await driver.post(INITIALIZE)).status == 200
    assert "Workers share no connections" in caplog.text
    assert "no room" in caplog.text


def _no_room(path):
    raise OSError("no room")


async def test_a_stream_ends_when_the_way_to_its_worker_broke_though_that_one_lives(worker):
    owner, edge = await worker(), await worker()
    connection = await owner.connection()
    stream = await edge.stream(connection)
    edge.app._run.workers._forwarder._backplane._links[name_of(owner)].close()
    with anyio.fail_after(5):
        await stream.ended.wait()
    assert not stream.sent[-1]["more_body"]
    assert (await edge.post(request("session/list", 1), connection)).status == 202


async def test_who_is_cut_off_on_the_way_is_told_to_come_again_and_not_that_the_connection_is_gone(
    worker, monkeypatch, caplog
):
    owner, edge = await worker(), await worker()
    connection = await owner.connection()
    monkeypatch.setattr(edge.app._run.workers._forwarder._backplane, "send", lambda *_: anyio.sleep_forever())
    async with anyio.create_task_group() as tasks:
        calls = []

        async def post():
            calls.append(await edge.post(request("session/list", 1), connection))

        tasks.start_soon(post)
        await until(lambda: edge.app._run.workers._forwarder._calls)
        edge.app.cut()
    assert calls[0].status == 503
    assert "reached worker" not in caplog.text


class Liner:
    """Answers with lines that are separated by what must be escaped."""

    @on.prompt
    async def answer(self, turn: PromptContext) -> None:
        """One long message."""
        await turn.send_message("\u2028" * int(turn.text))


async def test_the_largest_event_crosses_though_it_grows_on_the_way(worker):
    owner, edge = await worker(acp_agent(Liner), max_message_size=10_000), await worker(max_message_size=10_000)
    connection = await owner.connection()
    session = await edge.session(connection)
    stream = await edge.stream(connection, session)
    await edge.post(prompt(session, "6400", 1), connection, session)
    await stream.until(lambda: 1 in stream.answers)
    ((_, update), _) = stream.events
    assert update["params"]["update"]["content"]["text"] == "\u2028" * 6400


async def test_the_smallest_messages_cross_with_the_longest_headers(worker):
    owner, edge = await worker(max_message_size=1000), await worker(max_message_size=1000)
    connection = await owner.connection()
    for driver in (owner, edge):
        call = await driver.post(request("session/list", 1), connection, "x" * 5000)
        assert call.status == 400
