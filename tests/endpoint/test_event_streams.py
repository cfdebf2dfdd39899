"""What is read on an event stream, whatever happens to its reader: driven without a server, nothing is chance."""

import json

import anyio
import pytest

from acp_integration.assembly import AgentBuilder
from acp_integration.endpoint import eventstream, mailbox
from tests.endpoint.counter import Counter, numbered
from tests.endpoint.driver import events_in, ids, prompt, request, scope_of


async def open_session(driver):
    connection = await driver.connection()
    return connection, await driver.session(connection)


async def read_to_answer(stream, identifier=1):
    with anyio.fail_after(10):
        await stream.until(lambda: any(message.get("id") == identifier for _, message in stream.events))
    return stream.events


async def leave(stream):
    stream.disconnect()
    with anyio.fail_after(5):
        await stream.ended.wait()


async def test_events_wait_in_order_for_the_first_reader(drive):
    driver = await drive(Counter)
    connection, session = await open_session(driver)
    assert (await driver.post(prompt(session, "20"), connection, session)).status == 202
    stream = await driver.stream(connection, session)
    events = await read_to_answer(stream)
    assert numbered(events) == list(range(20))
    assert events[-1][1]["result"]["stopReason"] == "end_turn"


async def test_event_ids_grow(drive):
    driver = await drive(Counter)
    connection, session = await open_session(driver)
    await driver.post(prompt(session, "20"), connection, session)
    ids_read = [identifier for identifier, _ in await read_to_answer(await driver.stream(connection, session))]
    assert ids_read == sorted(set(ids_read))


async def test_a_client_that_splits_lines_as_text_is_not_broken(drive):
    driver = await drive()
    connection, session = await open_session(driver)
    await driver.post(prompt(session, "echo \u2028\u2029\u0085 \u00e4"), connection, session)
    stream = await driver.stream(connection, session)
    await read_to_answer(stream)
    lines = [line for line in stream.body.decode().splitlines() if line.startswith("data:")]
    assert json.loads(lines[0][5:])["params"]["update"]["content"]["text"] == "echo: echo \u2028\u2029\u0085 \u00e4"


async def test_a_new_reader_gets_what_was_never_written_to_the_old_one(drive):
    driver = await drive(Counter)
    connection, session = await open_session(driver)
    first = await driver.stream(connection, session)
    await driver.post(prompt(session, "3", 1), connection, session)
    await read_to_answer(first)
    await leave(first)
    await driver.post(prompt(session, "5", 2), connection, session)
    second = await driver.stream(connection, session)
    assert numbered(await read_to_answer(second, 2)) == list(range(5))


@pytest.mark.parametrize("seen", range(4))
async def test_a_reader_that_says_what_it_has_seen_gets_exactly_the_rest(drive, seen):
    driver = await drive(Counter)
    connection, session = await open_session(driver)
    first = await driver.stream(connection, session)
    await driver.post(prompt(session, "3"), connection, session)
    events = await read_to_answer(first)
    await leave(first)
    second = await driver.stream(connection, session, last_id=events[seen][0])
    await driver.post(prompt(session, "1", 2), connection, session)
    assert (await read_to_answer(second, 2))[: len(events) - seen - 1] == events[seen + 1 :]


@pytest.mark.parametrize("last_id", ["99999999", "x", "-1", "1.5", "\u00b2", "9" * 100])
async def test_an_event_id_nobody_gave_out_changes_nothing(drive, last_id):
    driver = await drive(Counter)
    connection, session = await open_session(driver)
    await driver.post(prompt(session, "3"), connection, session)
    stream = await driver.stream(connection, session, last_id=last_id)
    assert numbered(await read_to_answer(stream)) == [0, 1, 2]


async def test_only_the_last_events_are_replayed(drive):
    driver = await drive(Counter, mailbox_capacity=4)
    connection, session = await open_session(driver)
    first = await driver.stream(connection, session)
    await driver.post(prompt(session, "20"), connection, session)
    events = await read_to_answer(first)
    await leave(first)
    second = await driver.stream(connection, session, last_id=0)
    with anyio.fail_after(5):
        assert await second.until_events(4) == events[-4:]


async def test_an_event_whose_write_failed_goes_to_the_next_reader(drive):
    driver = await drive(Counter)
    connection, session = await open_session(driver)
    first = await driver.stream(connection, session)
    first.fails_with = OSError("the peer is gone")
    await driver.post(prompt(session, "3"), connection, session)
    with anyio.fail_after(5):
        await first.ended.wait()
    second = await driver.stream(connection, session)
    assert numbered(await read_to_answer(second)) == [0, 1, 2]


async def test_an_event_in_the_write_of_a_reader_that_leaves_goes_to_the_next_reader(drive):
    driver = await drive(Counter)
    connection, session = await open_session(driver)
    first = await driver.stream(connection, session)
    first.hold = True
    await driver.post(prompt(session, "3"), connection, session)
    await leave(first)
    second = await driver.stream(connection, session)
    assert numbered(await read_to_answer(second)) == [0, 1, 2]


async def test_a_takeover_while_the_old_reader_writes_is_exact(drive):
    driver = await drive(Counter)
    connection, session = await open_session(driver)
    first = await driver.stream(connection, session)
    first.hold = True
    await driver.post(prompt(session, "10", 1), connection, session)
    second = await driver.stream(connection, session)
    await driver.post(prompt(session, "10", 2), connection, session)
    first.release()
    with anyio.fail_after(5):
        await first.ended.wait()
    both = first.events + await read_to_answer(second, 2)
    assert numbered(both) == [*range(10), *range(10)]
    assert [identifier for identifier, _ in both] == sorted({identifier for identifier, _ in both})


async def test_a_reader_that_is_taken_over_before_its_first_write_leaves_and_disturbs_nobody(drive):
    driver = await drive(Counter)
    connection, session = await open_session(driver)
    headers = {"accept": "text/event-stream", **ids(connection, session)}
    first = driver.open(scope_of("GET", headers), {"type": "http.request", "body": b""})
    first.hold = True
    await anyio.wait_all_tasks_blocked()
    second = await driver.stream(connection, session)
    await anyio.wait_all_tasks_blocked()
    first.release()
    with anyio.fail_after(mailbox.TAKEOVER_WAIT / 2):
        await first.ended.wait()
    await driver.post(prompt(session, "10", 1), connection, session)
    assert numbered(await read_to_answer(second)) == list(range(10))


async def test_many_takeovers_at_once_leave_one_reader_and_lose_nothing(drive):
    driver = await drive(Counter)
    connection, session = await open_session(driver)
    streams = [await driver.stream(connection, session) for _ in range(20)]
    await driver.post(prompt(session, "10", 1), connection, session)
    await read_to_answer(streams[-1])
    assert numbered(streams[-1].events) == list(range(10))
    with anyio.fail_after(5):
        for stream in streams[:-1]:
            await stream.ended.wait()
    assert not any(stream.events for stream in streams[:-1])


async def test_fifty_reconnects_make_one_agent(drive):
    made = []
    build = AgentBuilder(Counter).build_factory()

    def factory(transport, caller):
        made.append(build(transport, caller))
        return made[-1]

    driver = await drive(factory=factory)
    connection, session = await open_session(driver)
    for _ in range(50):
        await leave(await driver.stream(connection, session))
    await driver.post(prompt(session, "3", 1), connection, session)
    assert numbered(await read_to_answer(await driver.stream(connection, session))) == [0, 1, 2]
    assert len(made) == 1


async def test_a_reader_that_never_ends_its_write_is_cut_off_by_the_next_one(drive, monkeypatch):
    monkeypatch.setattr(mailbox, "TAKEOVER_WAIT", 0.05)
    driver = await drive(Counter)
    connection, session = await open_session(driver)
    first = await driver.stream(connection, session)
    first.hold = True
    await driver.post(prompt(session, "3"), connection, session)
    second = await driver.stream(connection, session)
    third = await driver.stream(connection, session)
    assert numbered(await read_to_answer(third)) == [0, 1, 2]
    for stream in (first, second):
        with anyio.fail_after(5):
            await stream.ended.wait()


async def test_a_late_error_of_an_old_reader_does_not_disturb_the_new_one(drive):
    driver = await drive(Counter)
    connection, session = await open_session(driver)
    first = await driver.stream(connection, session)
    first.hold = True
    await driver.post(prompt(session, "3", 1), connection, session)
    second = await driver.stream(connection, session)
    first.fails_with = OSError("late")
    first.release()
    assert numbered(await read_to_answer(second)) == [0, 1, 2]
    await driver.post(prompt(session, "2", 2), connection, session)
    assert numbered(await read_to_answer(second, 2)) == [0, 1, 2, 0, 1]


async def test_a_reader_that_makes_no_progress_is_detached_and_its_events_kept(drive, monkeypatch):
    monkeypatch.setattr(eventstream, "STALL_LIMIT", 0.05)
    driver = await drive(Counter)
    connection, session = await open_session(driver)
    first = await driver.stream(connection, session)
    first.hold = True
    await driver.post(prompt(session, "3"), connection, session)
    with anyio.fail_after(5):
        await first.ended.wait()
    second = await driver.stream(connection, session)
    assert numbered(await read_to_answer(second)) == [0, 1, 2]


async def test_a_slow_reader_slows_the_turn_down_and_loses_nothing(drive):
    driver = await drive(Counter, max_pending_sse_events=100)
    connection, session = await open_session(driver)
    stream = await driver.stream(connection, session)
    stream.hold = True
    await driver.post(prompt(session, "2000"), connection, session)
    for _ in range(50):
        await anyio.lowlevel.checkpoint()
    assert session_mailbox(driver, connection, session).unread <= 100
    stream.release()
    assert numbered(await read_to_answer(stream)) == list(range(2000))


async def test_one_stalled_stream_stops_neither_another_session_nor_the_connection(drive):
    driver = await drive(Counter, max_pending_sse_events=100)
    connection, session = await open_session(driver)
    other = await driver.session(connection)
    stalled = await driver.stream(connection, session)
    stalled.hold = True
    await driver.post(prompt(session, "2000", 1), connection, session)
    stream = await driver.stream(connection, other)
    await driver.post(prompt(other, "2000", 2), connection, other)
    assert numbered(await read_to_answer(stream, 2)) == list(range(2000))
    assert await driver.session(connection)
    stalled.release()
    assert numbered(await read_to_answer(stalled)) == list(range(2000))


async def test_a_mailbox_nobody_reads_overflows_and_closes_the_connection(drive, monkeypatch):
    monkeypatch.setattr(mailbox, "READER_GRACE", 0.0)
    driver = await drive(Counter, mailbox_capacity=10)
    connection, session = await open_session(driver)
    await driver.post(prompt(session, "1000"), connection, session)
    with anyio.fail_after(5):
        while (await driver.request("GET", {"accept": "*/*", **ids(connection, "x")})).status != 404:
            pass


async def test_a_reader_that_comes_in_time_finds_a_turn_larger_than_the_mailbox_whole(drive):
    driver = await drive(Counter, mailbox_capacity=10)
    connection, session = await open_session(driver)
    await driver.post(prompt(session, "300"), connection, session)
    for _ in range(50):
        await anyio.lowlevel.checkpoint()
    stream = await driver.stream(connection, session)
    assert numbered(await read_to_answer(stream)) == list(range(300))


async def test_a_quiet_stream_says_that_it_is_alive(drive):
    driver = await drive(Counter, keep_alive_interval=0.02)
    stream = await driver.stream(await driver.connection())
    with anyio.fail_after(5):
        await stream.until(lambda: stream.body.count(b": keep-alive\n\n") >= 3)
    assert stream.body.startswith(b": connected\n\n: keep-alive\n\n")


async def test_a_broken_stream_does_not_stop_the_keep_alive_of_the_others(drive):
    driver = await drive(Counter, keep_alive_interval=0.02)
    broken = await driver.stream(await driver.connection())
    broken.fails_with = OSError()
    stream = await driver.stream(await driver.connection())
    with anyio.fail_after(5):
        await broken.ended.wait()
        seen = len(stream.body)
        await stream.until(lambda: len(stream.body) > seen + 30)


async def test_a_stream_of_a_session_that_never_comes_to_be_leaves_nothing(drive):
    driver = await drive(Counter, max_provisional_sessions=1)
    connection = await driver.connection()
    for session in ("a", "b", "c"):
        stream = await driver.stream(connection, session)
        assert stream.status == 200
        await leave(stream)


async def test_an_answer_about_an_unknown_session_comes_on_its_stream_if_there_is_one(drive):
    driver = await drive(Counter)
    connection = await driver.connection()
    own, stream = await driver.stream(connection), await driver.stream(connection, "nobody")
    await driver.post(prompt("nobody", "1", 1), connection, "nobody")
    await driver.post(prompt("nothing", "1", 2), connection, "nothing")
    with anyio.fail_after(5):
        (answer,) = await stream.until_events(1)
        (other,) = await own.until_events(1)
    assert (answer[1]["id"], answer[1]["error"]["code"]) == (1, -32002)
    assert (other[1]["id"], other[1]["error"]["code"]) == (2, -32002)


@pytest.mark.parametrize("opened_before", [True, False])
async def test_the_answer_to_session_new_comes_on_the_connection_stream(drive, opened_before):
    driver = await drive(Counter)
    connection = await driver.connection()
    if opened_before:
        stream = await driver.stream(connection)
        await driver.post(request("session/new", 3, cwd="/", mcpServers=[]), connection)
    else:
        await driver.post(request("session/new", 3, cwd="/", mcpServers=[]), connection)
        stream = await driver.stream(connection)
    assert (await read_to_answer(stream, 3))[0][1]["result"]["sessionId"]


async def test_a_stream_ends_with_the_connection(drive):
    driver = await drive(Counter)
    connection, session = await open_session(driver)
    streams = [await driver.stream(connection), await driver.stream(connection, session)]
    assert (await driver.request("DELETE", ids(connection, None))).status == 202
    with anyio.fail_after(5):
        for stream in streams:
            await stream.ended.wait()
    assert all(stream.sent[-1] == {"type": "http.response.body", "body": b"", "more_body": False} for stream in streams)
    assert events_in(streams[1].body) == []


def session_mailbox(driver, connection, session):
    served = next(served for served in driver.app._run.service.connections if served.id == connection)
    return served.transport.streams.of(session)
