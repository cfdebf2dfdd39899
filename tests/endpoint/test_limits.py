"""Everything a client can make the endpoint keep has a bound, and what nobody comes back to ends."""

import anyio
import pytest

from acp_integration.caller import Caller
from acp_integration.endpoint import CALLER_KEY, AcpEndpoint, inbox, streams
from acp_integration.errors import ConfigurationError, ConnectionClosed
from acp_integration.options import EndpointOptions
from tests.endpoint.driver import INITIALIZE, ids, prompt, request, scope_of


async def until_left(driver, count):
    """Wait until no more than so many connections are left."""
    with anyio.fail_after(5):
        while len(driver.app._run.service.connections) > count:
            await anyio.sleep(0.005)


async def until_none_is_left(driver):
    await until_left(driver, 0)


def test_every_limit_that_makes_no_sense_is_reported_at_once():
    with pytest.raises(ConfigurationError) as refused:
        AcpEndpoint(lambda transport, caller: None, EndpointOptions(mailbox_capacity=0, shutdown_timeout=-1))
    assert refused.value.problems == (
        "acp.agent.transport.http.mailbox-capacity must be positive",
        "acp.agent.transport.http.shutdown-timeout must be positive",
    )


async def test_one_connection_too_many_is_503_and_names_the_setting(drive):
    driver = await drive(max_connections=3)
    connections = [await driver.connection() for _ in range(3)]
    refused = await driver.post(INITIALIZE)
    assert refused.status == 503
    assert b"acp.agent.transport.http.max-connections" in refused.body
    await driver.request("DELETE", ids(connections[0], None))
    await driver.connection()


async def test_one_connection_of_a_user_too_many_is_429_and_names_the_setting(drive):
    driver = await drive(max_connections_per_principal=2)
    ann, bob = ({CALLER_KEY: Caller(principal=name)} for name in ("ann", "bob"))
    await driver.connection(**ann)
    await driver.connection(**ann)
    refused = await driver.post(INITIALIZE, **ann)
    assert refused.status == 429
    assert b"acp.agent.transport.http.max-connections-per-principal" in refused.body
    await driver.connection(**bob)
    await driver.connection()


async def test_sockets_count_as_connections(drive):
    driver = await drive(max_connections=1)
    await driver.connection()
    call = driver.open({**scope_of(), "type": "websocket"}, {"type": "websocket.connect"})
    with anyio.fail_after(5):
        await call.ended.wait()
    assert [message["type"] for message in call.sent] == ["websocket.close"]


async def test_connections_that_nobody_comes_back_to_end(drive):
    driver = await drive(connection_idle_timeout=0.1)
    for _ in range(20):
        await driver.connection()
    await until_none_is_left(driver)


async def test_a_connection_with_an_open_stream_does_not_end(drive):
    driver = await drive(connection_idle_timeout=0.05)
    connection = await driver.connection()
    stream = await driver.stream(connection)
    await driver.connection()
    await until_left(driver, 1)
    assert not stream.ended.is_set()
    stream.disconnect()
    await until_none_is_left(driver)


async def test_a_turn_that_nobody_reads_ends_after_its_own_time(drive):
    driver = await drive(connection_idle_timeout=0.05, detached_turn_timeout=1)
    connection = await driver.connection()
    session = await driver.session(connection)
    await driver.post(prompt(session, "wait_for_cancel"), connection, session)
    await driver.connection()
    await until_left(driver, 1)
    assert driver.app.active_turn_count == 1
    await until_none_is_left(driver)


async def test_a_body_is_not_read_past_the_limit(drive):
    driver = await drive(max_message_size=1000)
    chunk = {"type": "http.request", "body": b" " * 600, "more_body": True}
    incoming = [dict(chunk) for _ in range(10)]
    call = driver.open(scope_of(headers={"content-type": "application/json"}))
    call._incoming[:] = incoming
    call._notice()
    with anyio.fail_after(5):
        await call.ended.wait()
    assert call.status == 413
    assert len(call._incoming) == 8


async def test_a_body_announced_over_the_limit_is_not_read_at_all(drive):
    driver = await drive(max_message_size=1000)
    call = driver.open(scope_of(headers={"content-type": "application/json", "content-length": "1001"}))
    with anyio.fail_after(5):
        await call.ended.wait()
    assert call.status == 413


async def test_a_blank_header_is_an_absent_one(drive):
    driver = await drive()
    assert (await driver.request("DELETE", {"acp-connection-id": "  "})).status == 400


async def test_requests_to_nobody_leave_nothing(drive):
    driver = await drive()
    for _ in range(100):
        await driver.request("GET", {"accept": "text/event-stream"})
        await driver.request("DELETE")
        await driver.post(request("initialize", protocolVersion=[]))
    await until_none_is_left(driver)


async def test_sessions_that_fail_to_load_never_exhaust_the_provisional_ones(drive, monkeypatch):
    monkeypatch.setattr(streams, "DISCARD_AFTER", 0.0)
    driver = await drive(max_provisional_sessions=2)
    connection = await driver.connection()
    for number in range(10):
        stream = await driver.stream(connection, f"s{number}")
        assert stream.status == 200
        answer = await driver.post(request("session/load", number, sessionId=f"s{number}", cwd="/"), connection)
        assert answer.status == 202
        with anyio.fail_after(5):
            await stream.ended.wait()


async def test_unread_bytes_are_bounded_too(drive):
    driver = await drive(max_message_size=20_000)
    connection = await driver.connection()
    session = await driver.session(connection)
    for number in range(20):
        await driver.post(request("_" + "m" * 10_000, number), connection, session)
    await driver.post(prompt(session, "stream:200:1000", 99), connection, session)
    await until_none_is_left(driver)


# The inbox: a place in receive order, or none.


async def test_a_full_inbox_makes_the_next_one_wait_in_order():
    box = inbox.Inbox(max_bytes=10**9)
    for number in range(inbox.CAPACITY):
        assert box.offer(b"%d" % number)
    assert not box.offer(b"late")
    async with anyio.create_task_group() as tasks:
        for name in (b"first", b"second", b"third"):
            tasks.start_soon(box.put, name)
            await anyio.lowlevel.checkpoint()
        assert len(await box.take()) == inbox.CAPACITY
        assert not box.offer(b"pushes in")
    assert list(await box.take()) == [b"first", b"second", b"third"]


async def test_an_inbox_is_bounded_in_bytes_but_takes_one_frame_of_any_size():
    box = inbox.Inbox(max_bytes=10)
    assert box.offer(b"x" * 100)
    assert not box.offer(b"y")


async def test_a_closed_inbox_gives_out_what_it_has_and_then_its_end():
    box = inbox.Inbox(max_bytes=10)
    assert box.offer(b"x" * 10)
    with anyio.fail_after(5):
        async with anyio.create_task_group() as tasks:

            async def put_too_late():
                with pytest.raises(ConnectionClosed):
                    await box.put(b"y")

            tasks.start_soon(put_too_late)
            await anyio.lowlevel.checkpoint()
            box.close()
    assert list(await box.take()) == [b"x" * 10]
    assert list(await box.take()) == []
