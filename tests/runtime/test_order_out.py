"""Updates leave in the order sent, the answer is behind all of them, and nothing of the turn is behind the answer."""

import time
from typing import Any

import anyio


async def test_updates_leave_in_order_and_before_the_answer(connect: Any) -> None:
    async with connect() as peer:
        await peer.initialize()
        session = await peer.new_session()
        prompt = peer.prompt(session, "stream:5000")
        await peer.write(prompt)
        await peer.answer(prompt)
        assert peer.texts(session) == [str(number) for number in range(5000)]
        assert peer.log[-1] == peer.answers(prompt)[0]


async def test_updates_of_child_tasks_are_before_the_answer(connect: Any) -> None:
    async with connect() as peer:
        await peer.initialize()
        session = await peer.new_session()
        prompt = peer.prompt(session, "child")
        await peer.write(prompt)
        await peer.answer(prompt)
        assert len(peer.texts(session)) == 20
        assert peer.log[-1] == peer.answers(prompt)[0]


async def test_updates_of_a_sync_handler_leave_in_order_and_before_the_answer(connect: Any) -> None:
    async with connect("SyncAgent") as peer:
        await peer.initialize()
        session = await peer.new_session()
        prompt = peer.prompt(session, "stream:2000")
        await peer.write(prompt)
        await peer.answer(prompt)
        assert peer.texts(session) == [str(number) for number in range(2000)]
        assert peer.log[-1] == peer.answers(prompt)[0]


async def test_an_update_behind_the_answer_is_dropped(connect: Any) -> None:
    async with connect() as peer:
        await peer.initialize()
        session = await peer.new_session()
        prompt = peer.prompt(session, "late")
        await peer.write(prompt)
        await peer.answer(prompt)
        following = peer.prompt(session, "sleep:0.2")
        await peer.write(following)
        await peer.answer(following)
        assert peer.texts(session) == ["in time"]


async def test_a_streaming_turn_delays_neither_its_cancel_nor_another_session(connect: Any) -> None:
    for agent, text in (("RuleAgent", "stream:100000000"), ("GeneratorAgent", "100000000")):
        async with connect(agent) as peer:
            await peer.initialize()
            first, second = await peer.new_session(), await peer.new_session()
            streaming = peer.prompt(first, text)
            await peer.write(streaming)
            await peer.says("5000")
            other = peer.prompt(second, "echo:quick" if agent == "RuleAgent" else "1")
            asked = time.monotonic()
            await peer.write(other)
            await peer.answer(other)
            await peer.write(peer.cancel(first))
            assert (await peer.answer(streaming))["result"] == {"stopReason": "cancelled"}
            assert time.monotonic() - asked < 5, "both were starved by the stream"


async def test_two_sessions_never_see_each_others_updates(connect: Any) -> None:
    async with connect() as peer:
        await peer.initialize()
        sessions = [await peer.new_session() for _ in range(8)]
        prompts = [peer.prompt(session, "stream:50") for session in sessions]
        await peer.write(*prompts)
        with anyio.fail_after(10):
            for prompt in prompts:
                await peer.answer(prompt)
        for session in sessions:
            assert peer.texts(session) == [str(number) for number in range(50)]
