"""A cancel is told once, leaves time to clean up, and never reaches the next turn."""

from typing import Any

import anyio
import pytest
from rule_agents import started

CANCELLED = {"stopReason": "cancelled"}


async def begin(peer: Any, text: str) -> tuple[str, Any]:
    await peer.initialize()
    session = await peer.new_session()
    prompt = peer.prompt(session, text)
    await peer.write(prompt)
    return session, prompt


async def test_session_cancel_ends_the_turn_and_the_session_is_usable(connect: Any) -> None:
    async with connect() as peer:
        session, prompt = await begin(peer, "wait")
        await peer.says("waiting")
        await peer.write(peer.cancel(session))
        assert (await peer.answer(prompt))["result"] == CANCELLED
        following = peer.prompt(session, "echo:next")
        await peer.write(following)
        assert (await peer.answer(following))["result"] == {"stopReason": "end_turn"}


async def test_the_clean_up_of_a_cancelled_turn_awaits_and_sends(connect: Any) -> None:
    async with connect() as peer:
        session, prompt = await begin(peer, "finally")
        await peer.says("waiting")
        await peer.write(peer.cancel(session))
        assert (await peer.answer(prompt))["result"] == CANCELLED
        assert peer.texts(session)[-1] == "cleaned up"
        assert "method" not in peer.log[-1], "the answer is behind the last update"


@pytest.mark.parametrize("text", ["swallow:return", "swallow:raise", "answer:later"])
async def test_whatever_the_handler_does_after_a_cancel_the_answer_is_cancelled(connect: Any, text: str) -> None:
    async with connect() as peer:
        session, prompt = await begin(peer, text if text != "answer:later" else "swallow:return")
        await peer.says("waiting")
        await peer.write(peer.cancel(session))
        assert (await peer.answer(prompt))["result"] == CANCELLED


async def test_the_grace_period_ends_a_stubborn_handler_with_one_answer(connect: Any) -> None:
    async with connect("RuleAgent", {"cancel-grace-period": "200ms"}) as peer:
        session, prompt = await begin(peer, "stubborn")
        await peer.says("waiting")
        await peer.write(peer.cancel(session))
        assert (await peer.answer(prompt))["result"] == CANCELLED
        following = peer.prompt(session, "echo:free")
        await peer.write(following)
        await peer.answer(following)
        assert len(peer.answers(prompt)) == 1


async def test_a_handler_is_told_of_a_cancel_once(in_memory: Any) -> None:
    async with in_memory("RuleAgent", {"cancel-grace-period": "300ms"}) as peer:
        session, prompt = await begin(peer, "stubborn")
        await peer.says("waiting")
        await peer.write(peer.cancel(session), peer.cancel(session))
        await anyio.wait_all_tasks_blocked()
        assert started.count("cancelled once") == 1
        await peer.answer(prompt)


async def test_a_sync_handler_is_told_by_its_next_call(connect: Any) -> None:
    async with connect("SyncAgent") as peer:
        session, prompt = await begin(peer, "poll")
        await peer.says("polling")
        await peer.write(peer.cancel(session))
        assert (await peer.answer(prompt))["result"] == CANCELLED


async def test_a_blocked_sync_handler_is_answered_after_the_grace_period(connect: Any) -> None:
    async with connect("SyncAgent", {"cancel-grace-period": "200ms"}) as peer:
        session, prompt = await begin(peer, "sleep:2")
        await peer.says("sleeping")
        await peer.write(peer.cancel(session))
        assert (await peer.answer(prompt))["result"] == CANCELLED
        following = peer.prompt(session, "x")
        await peer.write(following)
        assert (await peer.answer(following))["result"] == {"stopReason": "end_turn"}


async def test_a_generator_that_never_awaits_is_cancelled_and_closed(connect: Any) -> None:
    async with connect("GeneratorAgent") as peer:
        session, prompt = await begin(peer, "100000000")
        await peer.says("100")
        await peer.write(peer.cancel(session))
        with anyio.fail_after(5):
            assert (await peer.answer(prompt))["result"] == CANCELLED


async def test_a_cooperative_turn_is_only_marked(connect: Any) -> None:
    async with connect("CooperativeAgent") as peer:
        session, prompt = await begin(peer, "x")
        await peer.says("waiting")
        await peer.write(peer.cancel(session))
        assert (await peer.answer(prompt))["result"] == CANCELLED
        assert peer.texts(session) == ["waiting", "ended by itself"]


async def test_a_cancel_of_an_idle_or_unknown_session_is_harmless(connect: Any) -> None:
    async with connect() as peer:
        await peer.initialize()
        session = await peer.new_session()
        await peer.write(peer.cancel(session), peer.cancel("nobody"))
        prompt = peer.prompt(session, "echo:untouched")
        await peer.write(prompt)
        assert (await peer.answer(prompt))["result"] == {"stopReason": "end_turn"}


async def test_cancel_request_ends_a_prompt_with_request_cancelled(connect: Any) -> None:
    async with connect() as peer:
        _, prompt = await begin(peer, "wait")
        await peer.says("waiting")
        await peer.write(peer.notification("$/cancel_request", {"requestId": prompt["id"]}))
        assert (await peer.answer(prompt))["error"] == {"code": -32800, "message": "Request cancelled"}


async def test_ids_are_compared_by_type_and_unknown_ones_ignored(connect: Any) -> None:
    async with connect() as peer:
        session, prompt = await begin(peer, "wait")
        await peer.says("waiting")
        wrong = [str(prompt["id"]), 999, None, {"a": 1}, 1.5]
        await peer.write(*(peer.notification("$/cancel_request", {"requestId": one}) for one in wrong))
        assert (await peer.call("session/list"))["result"] == {"sessions": []}
        assert not peer.answers(prompt)
        await peer.write(peer.cancel(session))
        await peer.answer(prompt)


async def test_a_prompt_under_session_cancel_answers_cancelled_to_a_cancel_request_too(connect: Any) -> None:
    async with connect() as peer:
        session, prompt = await begin(peer, "finally")
        await peer.says("waiting")
        await peer.write(peer.cancel(session), peer.notification("$/cancel_request", {"requestId": prompt["id"]}))
        assert (await peer.answer(prompt))["result"] == CANCELLED


async def test_session_close_cancels_first_and_then_closes(in_memory: Any) -> None:
    async with in_memory() as peer:
        session, prompt = await begin(peer, "finally")
        await peer.says("waiting")
        close = peer.request("session/close", {"sessionId": session})
        await peer.write(close)
        assert (await peer.answer(close))["result"] == {}
        assert (await peer.answer(prompt))["result"] == CANCELLED
        assert peer.log.index(peer.answers(prompt)[0]) < peer.log.index(peer.answers(close)[0])
        assert started.index("cancel handler") < started.index("close")
        gone = peer.prompt(session, "echo:x")
        await peer.write(gone)
        assert (await peer.answer(gone))["error"]["code"] == -32002


async def test_the_maximum_duration_ends_a_turn_with_its_own_error(connect: Any) -> None:
    async with connect("RuleAgent", {"max-prompt-duration": "200ms"}) as peer:
        _, prompt = await begin(peer, "wait")
        assert (await peer.answer(prompt))["error"] == {
            "code": -32800,
            "message": "Prompt exceeded maxPromptDuration of PT0.2S",
            "data": {"maxPromptDuration": "PT0.2S"},
        }


async def test_a_cancelling_turn_past_its_duration_answers_cancelled(connect: Any) -> None:
    async with connect("RuleAgent", {"max-prompt-duration": "400ms", "cancel-grace-period": "0"}) as peer:
        session, prompt = await begin(peer, "stubborn")
        await peer.says("waiting")
        await peer.write(peer.cancel(session))
        assert (await peer.answer(prompt))["result"] == CANCELLED


async def test_the_own_meta_of_an_answer_is_kept(connect: Any) -> None:
    async with connect() as peer:
        _, prompt = await begin(peer, "answer")
        assert (await peer.answer(prompt))["result"] == {"stopReason": "max_tokens", "_meta": {"kept": True}}
