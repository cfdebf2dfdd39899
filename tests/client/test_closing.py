"""The end of a client: what has come is handled, what waits is failed, nothing hangs."""

import anyio
import pytest

from acp_integration.client.builder import build_client
from acp_integration.errors import ConnectionClosed, PeerError
from acp_integration.hosts.client import AcpClientHost
from acp_integration.testing import NEVER, MockAgent


async def test_close_fails_what_waits_and_refuses_what_comes_later(agent, client, bound):
    agent.answer("_slow", NEVER)
    async with anyio.create_task_group() as tasks:

        async def call():
            with bound(), pytest.raises(ConnectionClosed, match="The client was closed"):
                await client.ext_request("_slow")

        tasks.start_soon(call)
        await agent.wait_for("_slow")
        await client.aclose()
    with pytest.raises(ConnectionClosed):
        await client.new_session("/")
    with pytest.raises(ConnectionClosed):
        await client.ext_request("_x")


async def test_close_handles_the_updates_that_came_before(agent, opened, bound):
    handled = []

    async def handle(update):
        await anyio.sleep(0.01)
        handled.append(update.text)

    client = await opened(lambda builder: builder.on_update(handle))
    agent.say("s", "a")
    agent.say("s", "b")
    await anyio.wait_all_tasks_blocked()
    with bound():
        await client.aclose()
    assert handled == ["a", "b"]


async def test_close_waits_for_handlers_at_most_the_request_timeout(agent, opened, make_settings, bound):
    async def handle(_update):
        await anyio.sleep_forever()

    client = await opened(lambda builder: builder.on_update(handle), settings=make_settings(request_timeout=0.05))
    agent.say("s", "a")
    await anyio.wait_all_tasks_blocked()
    with bound():
        await client.aclose()


async def test_close_answers_what_the_agent_still_asks(agent, opened, bound):
    asked = anyio.Event()

    async def decide(_request):
        asked.set()
        await anyio.sleep_forever()

    client = await opened(lambda builder: builder.on_ext_request("_ask", decide))
    async with anyio.create_task_group() as tasks:

        async def ask():
            with bound(), pytest.raises(PeerError) as failure:
                await agent.request("_ask", {})
            assert failure.value.code == -32800

        tasks.start_soon(ask)
        await asked.wait()
        await client.aclose()


async def test_a_notification_that_arrives_during_the_close_does_not_hang_it(agent, client, bound):
    with bound():
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(client.aclose)
            for _ in range(10):
                agent.say("s", "x")
                await anyio.lowlevel.checkpoint()


async def test_a_client_that_was_never_opened_can_be_closed_and_not_opened_then(agent):
    client = build_client(agent.transport)
    await client.aclose()
    with pytest.raises(ConnectionClosed):
        await client.initialize()


async def test_a_handler_can_close_its_own_client(agent, bound):
    clients = []

    async def handle(_update):
        await clients[0].aclose()

    client = build_client(agent.transport, None, [lambda builder: builder.on_update(handle)])
    clients.append(client)
    with bound():
        await client.initialize()
        agent.say("s", "x")
        while not client.closed:
            await anyio.lowlevel.checkpoint()
        await client.aclose()


# -- the host ----------------------------------------------------------------------------------------------------------


async def test_a_host_closes_once_and_every_call_gets_the_same_object(client, bound):
    host = AcpClientHost(client)
    first = host.close_gracefully()
    assert host.close_gracefully() is first
    with bound():
        await first
        await host.close()
    assert client.closed


async def test_a_host_closes_at_once_what_does_not_close_in_time(agent, opened, bound, caplog):
    async def handle(_update):
        await anyio.sleep_forever()

    client = await opened(lambda builder: builder.on_update(handle))
    agent.say("s", "x")
    await anyio.wait_all_tasks_blocked()
    with bound():
        await AcpClientHost(client).close(0.05)
        await client.aclose()
    assert "did not close within 0.05 s" in caplog.text


async def test_a_host_of_a_client_that_was_never_opened_closes(agent, bound):
    client = build_client(agent.transport)
    with bound():
        await AcpClientHost(client).close()
    assert client.closed


def test_a_host_closes_from_a_thread_and_ends_the_thread_of_the_facade(make_settings):
    agent = MockAgent()
    host = AcpClientHost(build_client(agent.transport))
    host.sync_client.run(agent.__aenter__)
    host.sync_client.initialize()
    host.close_blocking()
    assert host.client.closed
    assert host.client.home.loop.is_closed()
