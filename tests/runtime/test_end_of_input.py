"""The end of input is a half-close: what was read is answered; what nobody can read any more ends at once."""

import time
from typing import Any

import anyio
from rule_agents import started

CANCELLED = {"stopReason": "cancelled"}


async def test_everything_read_is_answered_behind_the_end_of_input(connect: Any) -> None:
    async with connect() as peer:
        await peer.initialize()
        first, second = await peer.new_session(), await peer.new_session()
        prompts = [peer.prompt(first, "sleep:0.3"), peer.prompt(second, "stream:100")]
        await peer.write(*prompts)
        await peer.end_input()
        for prompt in prompts:
            assert (await peer.answer(prompt))["result"] == {"stopReason": "end_turn"}
        with anyio.fail_after(5):
            await peer.ended.wait()


async def test_the_drain_timeout_cancels_what_takes_longer(connect: Any) -> None:
    async with connect("RuleAgent", {"drain-timeout": "200ms"}) as peer:
        await peer.initialize()
        prompt = peer.prompt(await peer.new_session(), "finally")
        await peer.write(prompt)
        await peer.says("waiting")
        await peer.end_input()
        assert (await peer.answer(prompt))["result"] == CANCELLED
        assert "cleaned up" in peer.texts()


async def test_the_abort_timeout_ends_a_handler_that_does_not_end(connect: Any) -> None:
    async with connect("RuleAgent", {"drain-timeout": "0s", "abort-timeout": "200ms"}) as peer:
        await peer.initialize()
        prompt = peer.prompt(await peer.new_session(), "stubborn")
        await peer.write(prompt)
        await peer.says("waiting")
        await peer.end_input()
        assert (await peer.answer(prompt))["result"] == CANCELLED


async def test_a_handler_that_swallows_every_cancel_holds_no_connection_open(connect: Any) -> None:
    async with connect(settings={"drain-timeout": "0s", "abort-timeout": "100ms"}) as peer:
        await peer.initialize()
        prompt = peer.prompt(await peer.new_session(), "refuse")
        await peer.write(prompt)
        await peer.says("waiting")
        await peer.end_input()
        with anyio.fail_after(10):
            await peer.ended.wait()
        assert (await peer.answer(prompt))["result"] == CANCELLED
        started.append("test over")
        await anyio.wait_all_tasks_blocked()


async def test_a_turn_that_needs_the_client_is_cancelled_at_the_end_of_input(connect: Any) -> None:
    async with connect() as peer:
        await peer.initialize()
        prompt = peer.prompt(await peer.new_session(), "permission")
        await peer.write(prompt)
        await peer.seen(lambda frame: frame.get("method") == "session/request_permission")
        ended = time.monotonic()
        await peer.end_input()
        assert (await peer.answer(prompt))["result"] == CANCELLED
        assert time.monotonic() - ended < 5


async def test_a_stopped_runtime_cancels_its_turns_and_answers_them(in_memory: Any) -> None:
    async with in_memory() as peer:
        await peer.initialize()
        prompts = [peer.prompt(await peer.new_session(), "wait") for _ in range(3)]
        await peer.write(*prompts)
        await anyio.wait_all_tasks_blocked()
        peer.runtime.stop()
        for prompt in prompts:
            assert (await peer.answer(prompt))["result"] == CANCELLED
        await peer.ended.wait()


async def test_a_dropped_connection_with_thirty_two_turns_leaves_nothing(in_memory: Any) -> None:
    async with in_memory() as peer:
        await peer.initialize()
        prompts = [peer.prompt(await peer.new_session(), "wait") for _ in range(32)]
        await peer.write(*prompts)
        await anyio.wait_all_tasks_blocked()
        assert peer.runtime.active_turns == 32
    assert peer.runtime.active_turns == 0


async def test_a_runtime_that_is_cancelled_itself_answers_and_releases_its_turns(in_memory: Any) -> None:
    async with in_memory() as peer:
        await peer.initialize()
        prompt = peer.prompt(await peer.new_session(), "wait")
        await peer.write(prompt)
        await peer.says("waiting")
        peer.abandon.cancel()
        assert (await peer.answer(prompt))["result"] == CANCELLED
        await peer.ended.wait()
        assert peer.runtime.active_turns == 0
