"""A prompt is admitted or refused when it is read; control requests are always served."""

import time
from typing import Any

from rule_agents import started


async def test_a_second_prompt_on_a_session_is_refused_at_once(connect: Any) -> None:
    async with connect() as peer:
        await peer.initialize()
        session = await peer.new_session()
        first, second = peer.prompt(session, "wait"), peer.prompt(session, "echo:x")
        await peer.write(first, second)
        assert (await peer.answer(second))["error"] == {
            "code": -32600,
            "message": f"There is already an active prompt on session {session}",
            "data": {"sessionId": session},
        }
        await peer.write(peer.cancel(session))
        assert (await peer.answer(first))["result"] == {"stopReason": "cancelled"}


async def test_a_prompt_waiting_for_its_session_is_admitted_when_read(connect: Any) -> None:
    async with connect() as peer:
        await peer.initialize()
        session = await peer.new_session()
        mode = peer.request("session/set_mode", {"sessionId": session, "modeId": "slow:1"})
        first, second = peer.prompt(session, "echo:never"), peer.prompt(session, "echo:x")
        before = time.monotonic()
        await peer.write(mode, first, second, peer.cancel(session))
        assert (await peer.answer(second))["error"]["code"] == -32600
        assert (await peer.answer(first))["result"] == {"stopReason": "cancelled"}
        assert not peer.answers(mode), f"answered only behind the mode, after {time.monotonic() - before:.1f} s"
        await peer.answer(mode)
        assert peer.texts(session) == []
        assert "echo:never" not in started


async def test_requests_past_the_limit_are_refused_and_control_requests_are_not(connect: Any) -> None:
    async with connect("RuleAgent", {"max-concurrent-requests": "3"}) as peer:
        await peer.initialize()
        sessions = [await peer.new_session() for _ in range(4)]
        turns = [peer.prompt(session, "wait") for session in sessions[:2]]
        work = peer.request("_work", {"seconds": 30})
        refused = peer.prompt(sessions[3], "echo:x")
        await peer.write(*turns, work, refused)
        answer = await peer.answer(refused)
        assert (answer["error"]["code"], answer["error"]["data"]) == (-32600, {"limit": 3})
        assert (await peer.call("session/set_mode", {"sessionId": sessions[0], "modeId": "m"}))["result"] == {}
        await peer.write(peer.cancel(sessions[0]))
        await peer.answer(turns[0])
        again = peer.prompt(sessions[3], "echo:served")
        await peer.write(again)
        assert (await peer.answer(again))["result"]["stopReason"] == "end_turn"
        await peer.write(peer.cancel(sessions[1]), peer.notification("$/cancel_request", {"requestId": work["id"]}))
        await peer.answer(turns[1])
        assert (await peer.answer(work))["error"]["code"] == -32800


async def test_a_failed_turn_frees_its_session(connect: Any) -> None:
    async with connect() as peer:
        await peer.initialize()
        session = await peer.new_session()
        failing, next_one = peer.prompt(session, "fail"), peer.prompt(session, "echo:after")
        await peer.write(failing)
        assert (await peer.answer(failing))["error"]["code"] == -32603
        await peer.write(next_one)
        assert (await peer.answer(next_one))["result"]["stopReason"] == "end_turn"


async def test_the_prompt_behind_an_answer_is_never_refused(connect: Any) -> None:
    async with connect() as peer:
        await peer.initialize()
        session = await peer.new_session()
        for number in range(300):
            prompt = peer.prompt(session, f"echo:{number}")
            await peer.write(prompt)
            assert (await peer.answer(prompt)).get("result") == {"stopReason": "end_turn"}


async def test_a_prompt_on_an_unknown_session_is_refused(connect: Any) -> None:
    async with connect() as peer:
        await peer.initialize()
        prompt = peer.prompt("nobody", "echo:x")
        await peer.write(prompt)
        assert (await peer.answer(prompt))["error"]["code"] == -32002


async def test_thirty_two_sync_turns_run_at_once(connect: Any) -> None:
    async with connect("SyncAgent") as peer:
        await peer.initialize()
        sessions = [await peer.new_session() for _ in range(32)]
        turns = [peer.prompt(session, "sleep:0.5") for session in sessions]
        before = time.monotonic()
        await peer.write(*turns)
        for turn in turns:
            assert (await peer.answer(turn))["result"]["stopReason"] == "end_turn"
        assert time.monotonic() - before < 8, "one after the other they take 16 s"


async def test_notifications_under_way_are_bounded(in_memory: Any) -> None:
    """Those past the bound are dropped; each has a session of its own, so that none waits for another."""
    async with in_memory() as peer:
        await peer.initialize()
        notes = [peer.notification("_note", {"sessionId": f"s{n}", "text": n, "slow": True}) for n in range(300)]
        await peer.write(*notes, *(peer.cancel(f"s{n}") for n in range(300)))
        await peer.call("_work", {"seconds": 1})
    assert sum(text.startswith("note") for text in started) <= 256
    assert started.count("cancel handler") <= 256
    assert "note 0" in started
