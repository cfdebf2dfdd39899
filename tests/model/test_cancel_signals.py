"""A handler notices a cancel however it looks for it."""

import threading

import anyio
import pytest

from acp_integration import PromptContext, SyncPromptContext, acp_agent, current_turn, on, publish
from acp_integration.errors import TurnCancelled

noticed: list[str] = []


async def polls(turn: PromptContext):
    await turn.send_message("ready")
    try:
        await anyio.sleep_forever()
    finally:
        noticed.append("polled" if turn.is_cancelled else "missed")


async def is_called_back(turn: PromptContext):
    turn.on_cancel(lambda: noticed.append("called back"))
    await turn.send_message("ready")
    await anyio.sleep_forever()


async def waits(turn: PromptContext):
    async def watch():
        await turn.wait_cancelled()
        noticed.append("waited")

    await turn.send_message("ready")
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(watch)


async def raises(turn: PromptContext):
    await turn.send_message("ready")
    try:
        await anyio.sleep_forever()
    finally:
        try:
            turn.raise_if_cancelled()
        except TurnCancelled:
            noticed.append("raised")


def sync_polls(turn: SyncPromptContext):
    turn.send_message("ready")
    turn.wait_cancelled()
    assert turn.is_cancelled
    noticed.append("polled")


def sync_is_called_back(turn: SyncPromptContext):
    called = threading.Event()
    turn.on_cancel(called.set)
    turn.send_message("ready")
    assert called.wait(5)
    noticed.append("called back")


def sync_raises(turn: SyncPromptContext):
    turn.send_message("ready")
    turn.wait_cancelled()
    try:
        turn.send_message("too late")
    except TurnCancelled:
        noticed.append("raised")
        raise


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        (polls, "polled"),
        (is_called_back, "called back"),
        (waits, "waited"),
        (raises, "raised"),
        (sync_polls, "polled"),
        (sync_is_called_back, "called back"),
        (sync_raises, "raised"),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
async def test_a_handler_sees_the_cancel(serve, function, expected):
    noticed.clear()
    async with serve(acp_agent(function)) as client:
        await client.initialize()
        session = await client.new_session()
        prompt = client.start_prompt(session)
        await client.seen(lambda frame: frame.get("method") == "session/update")
        client.notify("session/cancel", sessionId=session)
        assert (await client.answer(prompt))["result"] == {"stopReason": "cancelled"}
        assert client.text == "ready"
    assert noticed == [expected]


async def test_publish_finds_the_turn_in_child_tasks_and_threads(serve):
    kinds = []

    def in_thread():
        kinds.append(type(current_turn()))
        publish("thread,")
        current_turn().send_message("blocking,")

    @acp_agent
    async def agent(turn: PromptContext):
        assert current_turn() is turn
        publish("unawaited,")
        await publish("awaited,")
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(child)
        await anyio.to_thread.run_sync(in_thread)
        await publish({"sessionUpdate": "plan", "entries": []})

    async def child():
        await publish("child,")

    async with serve(agent) as client:
        await client.ask()
        assert client.text == "unawaited,awaited,child,thread,blocking,"
        assert client.updates("plan")
    assert kinds == [SyncPromptContext]


async def test_outside_a_turn_publish_succeeds_and_sends_nothing():
    assert current_turn() is None
    await publish("nobody")
    publish({"sessionUpdate": "plan", "entries": []})


async def test_in_a_handler_without_a_turn_there_is_none(serve):
    @acp_agent
    class Agent:
        @on.new_session
        async def new(self):
            assert current_turn() is None
            await publish("nobody")
            return {"sessionId": "s"}

        @on.prompt
        async def answer(self, turn: PromptContext): ...

    async with serve(Agent) as client:
        await client.ask()
        assert client.updates() == []


async def test_publish_keeps_pace_with_a_slow_reader(serve):
    @acp_agent
    async def agent(turn: PromptContext):
        for _ in range(5000):
            await publish("x")

    async with serve(agent) as client:
        await client.ask()
        assert len(client.text) == 5000
