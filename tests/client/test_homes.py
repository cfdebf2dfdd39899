"""A client lives on one loop and is used from everywhere: other tasks, other loops, other threads."""

import asyncio
import threading
import time
from contextvars import ContextVar

import anyio
import anyio.from_thread
import anyio.to_thread
import pytest

from acp_integration.client import SyncAcpClient, build_client
from acp_integration.errors import ClientError, ConnectionClosed
from acp_integration.testing import NEVER, MockAgent
from acp_integration.transports import process
from acp_integration.transports.child import group_members
from acp_integration.transports.process import ProcessTransport


async def in_a_task_of_its_own(function, *arguments):
    """Run in a fresh task, as each request of a web application does."""
    return await asyncio.get_running_loop().create_task(function(*arguments))


async def test_a_client_is_opened_in_one_task_used_in_another_and_closed_in_a_third(agent, bound):
    client = build_client(agent.transport)
    with bound():
        await in_a_task_of_its_own(client.initialize)
        session = await in_a_task_of_its_own(client.new_session, "/")
        assert (await in_a_task_of_its_own(session.prompt, "hi")).stop_reason == "end_turn"
        await in_a_task_of_its_own(client.aclose)
    assert client.closed


async def test_clients_can_be_closed_in_any_order(bound):
    agents = [MockAgent() for _ in range(3)]
    clients = [build_client(agent.transport) for agent in agents]
    with bound():
        for agent in agents:
            await agent.__aenter__()
        for client in clients:
            await client.initialize()
        for client in (clients[0], clients[2], clients[1]):
            await client.aclose()
        for agent in agents:
            await agent.__aexit__()


async def test_nothing_of_the_request_that_opened_a_client_reaches_its_handlers(agent, bound):
    request = ContextVar("request", default="none")
    seen = []

    async def handle(_update):
        seen.append(request.get())

    client = build_client(agent.transport, None, [lambda builder: builder.on_update(handle)])
    request.set("the first request")
    with bound():
        async with client:
            agent.say("s", "x")
            await client.ext_request("_ping")
    assert seen == ["none"]


async def test_another_loop_in_another_thread_can_call_and_stream(agent, client, bound):
    def answer(params):
        agent.say(params["sessionId"], "far away")
        return {"stopReason": "end_turn"}

    async def elsewhere():
        session = await client.new_session("/")
        texts = [item.text async for item in session.stream("hi")]
        handle = await session.start("hi")
        return texts, (await handle.result()).text

    agent.answer("session/prompt", answer)
    with bound():
        texts, text = await anyio.to_thread.run_sync(asyncio.run, elsewhere())
    assert (texts, text) == (["far away", "far away"], "far away")


async def test_a_call_cancelled_on_another_loop_is_withdrawn(agent, client, bound):
    agent.answer("_slow", NEVER)

    async def elsewhere():
        with anyio.move_on_after(0.05):
            await client.ext_request("_slow")

    with bound():
        await anyio.to_thread.run_sync(asyncio.run, elsewhere())
        await agent.wait_for("$/cancel_request")


def test_a_client_whose_loop_is_gone_says_so():
    async def open_and_leave():
        async with MockAgent() as agent:
            client = build_client(agent.transport)
            await client.initialize()
            return client

    client = asyncio.run(open_and_leave())
    with pytest.raises(ConnectionClosed):
        asyncio.run(client.new_session("/"))


def test_a_loop_that_ends_without_a_close_takes_the_agent_with_it(monkeypatch):
    monkeypatch.setattr(process, "EXIT_GRACE", 0.1)
    transport = ProcessTransport("sleep", ["60"])

    async def open_and_leave():
        with anyio.move_on_after(0.2):
            await build_client(transport).ext_request("_x")

    asyncio.run(open_and_leave())
    assert not group_members(transport.pid)
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("acp-agent")]


# -- blocking code -----------------------------------------------------------------------------------------------------


class Spoken:
    """An agent in memory that lives on the loop of the client's own thread."""

    def __init__(self, *customizers):
        self.agent = MockAgent()
        self.client = build_client(self.agent.transport, None, customizers)

    def start(self, sync):
        sync.run(self.agent.__aenter__)

    def stop(self, sync):
        sync.run(self.agent.__aexit__)


@pytest.fixture
def spoken():
    return Spoken()


def test_blocking_code_opens_uses_and_closes_a_client_on_a_thread_of_its_own(spoken):
    def answer(params):
        spoken.agent.say(params["sessionId"], "Hello")
        return {"stopReason": "end_turn"}

    spoken.agent.answer("session/prompt", answer)
    sync = SyncAcpClient(spoken.client)
    spoken.start(sync)
    with sync:
        session = sync.new_session("/")
        assert session.prompt("hi").text == "Hello"
        assert [item.text for item in session.stream("hi")] == ["Hello", "Hello"]
        handle = session.start("hi")
        assert handle.result().text == "Hello"
        assert handle.done
    sync.close()
    assert not [thread for thread in threading.enumerate() if thread.name == "acp-client"]


def test_a_blocking_stream_that_is_left_cancels_its_turn(spoken):
    spoken.agent.answer("session/prompt", NEVER)
    sync = SyncAcpClient(spoken.client)
    spoken.start(sync)
    with sync:
        session = sync.new_session("/")
        stream = session.stream("hi")

        async def speak():
            await spoken.agent.wait_for("session/prompt")
            spoken.agent.say(session.id, "x")

        speaker = threading.Thread(target=sync.run, args=[speak])
        speaker.start()
        assert next(stream).text == "x"
        stream.close()
        speaker.join(5)
        sync.run(spoken.agent.wait_for, "session/cancel")


async def test_an_open_client_is_used_by_threads_over_the_same_connection(agent, client, bound):
    sync = SyncAcpClient(client)
    with bound():
        session = await anyio.to_thread.run_sync(sync.new_session, "/")
        assert (await anyio.to_thread.run_sync(session.prompt, "hi")).stop_reason == "end_turn"
        assert sync.async_client is client
        assert len(await agent.wait_for("initialize")) == 1


async def test_a_blocking_call_on_the_clients_own_loop_is_refused(client):
    with pytest.raises(ClientError, match="would never end"):
        SyncAcpClient(client).new_session("/")


def test_threads_share_one_client(spoken):
    sync = SyncAcpClient(spoken.client)
    spoken.start(sync)
    results = []
    with sync:
        session = sync.new_session("/")
        threads = [threading.Thread(target=lambda: results.append(session.prompt("hi").stop_reason)) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(5)
    assert results == ["end_turn"] * 8


def test_a_blocking_close_waits_for_handlers_only_so_long(monkeypatch):
    monkeypatch.setattr("acp_integration.client.sync.CLOSE_SECONDS", 0.1)
    stuck = threading.Event()

    async def handle(_update):
        stuck.set()
        await anyio.sleep_forever()

    spoken = Spoken(lambda builder: builder.on_update(handle))
    sync = SyncAcpClient(spoken.client)
    spoken.start(sync)
    sync.initialize()
    sync.async_client.home.call_soon(lambda: spoken.agent.say("s", "x"))
    assert stuck.wait(5)
    started = time.monotonic()
    sync.close()
    assert time.monotonic() - started < 30
    assert sync.async_client.closed
