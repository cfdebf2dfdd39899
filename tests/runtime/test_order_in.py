"""What a peer sent is started in the order of its lane, and the receive loop waits for nothing."""

from typing import Any

import anyio
from rule_agents import started


async def test_a_long_prompt_delays_no_other_session(connect: Any) -> None:
    async with connect() as peer:
        await peer.initialize()
        first, second = await peer.new_session(), await peer.new_session()
        long = peer.prompt(first, "wait")
        await peer.write(long)
        await peer.says("waiting", first)
        short = peer.prompt(second, "echo:quick")
        await peer.write(short)
        assert (await peer.answer(short))["result"] == {"stopReason": "end_turn"}
        assert not peer.answers(long)
        await peer.write(peer.cancel(first))
        await peer.answer(long)


async def test_initialize_is_answered_before_anything_behind_it_starts(connect: Any) -> None:
    async with connect() as peer:
        opening = peer.request("initialize", {"protocolVersion": 1})
        new = peer.request("session/new", {"cwd": "/a", "mcpServers": []})
        await peer.write(opening, new)
        await peer.answer(new)
        ids = [frame["id"] for frame in peer.log]
        assert ids == [opening["id"], new["id"]]


async def test_control_requests_of_a_session_run_in_receive_order(in_memory: Any) -> None:
    async with in_memory() as peer:
        await peer.initialize()
        session = await peer.new_session()
        slow = peer.request("session/set_mode", {"sessionId": session, "modeId": "slow"})
        quick = peer.request("session/set_mode", {"sessionId": session, "modeId": "quick"})
        await peer.write(slow, quick)
        await peer.answer(quick)
        assert [step for step in started if step.startswith("mode")] == [
            "mode slow",
            "mode slow done",
            "mode quick",
            "mode quick done",
        ]


async def test_a_slow_session_blocks_no_other(connect: Any) -> None:
    async with connect() as peer:
        await peer.initialize()
        first, second = await peer.new_session(), await peer.new_session()
        slow = peer.request("session/set_mode", {"sessionId": first, "modeId": "slow:1"})
        quick = peer.request("session/set_mode", {"sessionId": second, "modeId": "quick"})
        await peer.write(slow, quick)
        await peer.answer(quick)
        assert not peer.answers(slow)
        await peer.answer(slow)


async def test_new_sessions_are_made_in_receive_order(connect: Any) -> None:
    async with connect() as peer:
        await peer.initialize()
        slow = peer.request("session/new", {"cwd": "/slow", "mcpServers": []})
        quick = peer.request("session/new", {"cwd": "/quick", "mcpServers": []})
        await peer.write(slow, quick)
        await peer.answer(quick)
        ids = [frame["id"] for frame in peer.log]
        assert ids[-2:] == [slow["id"], quick["id"]]


async def test_a_list_starts_behind_every_control_request_read_before(in_memory: Any) -> None:
    async with in_memory() as peer:
        await peer.initialize()
        session = await peer.new_session()
        await peer.write(
            peer.request("session/set_mode", {"sessionId": session, "modeId": "slow"}),
            peer.request("session/new", {"cwd": "/slow", "mcpServers": []}),
        )
        await peer.call("session/list")
        assert started.index("list") > started.index("mode slow done")
        assert started.index("list") > started.index("new /slow")


async def test_extension_notifications_run_in_order_within_their_session(in_memory: Any) -> None:
    async with in_memory() as peer:
        await peer.initialize()
        session = await peer.new_session()
        notes = [
            peer.notification("_note", {"sessionId": session, "text": "first", "slow": True}),
            peer.notification("_note", {"sessionId": session, "text": "second"}),
        ]
        mode = peer.request("session/set_mode", {"sessionId": session, "modeId": "last"})
        await peer.write(*notes, mode)
        await peer.answer(mode)
        assert [step for step in started if step.startswith(("note", "mode"))][:3] == [
            "note first",
            "note second",
            "mode last",
        ]


async def test_a_prompt_starts_behind_the_control_requests_of_its_own_session(in_memory: Any) -> None:
    async with in_memory() as peer:
        await peer.initialize()
        session = await peer.new_session()
        prompt = peer.prompt(session, "echo:x")
        await peer.write(peer.request("session/set_mode", {"sessionId": session, "modeId": "slow"}), prompt)
        await peer.answer(prompt)
        assert started.index("echo:x") > started.index("mode slow done")


async def test_a_later_answer_may_overtake_an_earlier_one(connect: Any) -> None:
    async with connect() as peer:
        await peer.initialize()
        slow, quick = peer.request("_work", {"seconds": 0.3}), peer.request("_work", {"seconds": 0})
        await peer.write(slow, quick)
        await peer.answer(slow)
        ids = [frame["id"] for frame in peer.log]
        assert ids.index(quick["id"]) < ids.index(slow["id"])


async def test_more_waiting_control_requests_than_allowed_are_refused(connect: Any) -> None:
    async with connect() as peer:
        await peer.initialize()
        session = await peer.new_session()
        modes = [peer.request("session/set_mode", {"sessionId": session, "modeId": "slow:0.5"})]
        modes += [peer.request("session/set_mode", {"sessionId": session, "modeId": f"m{n}"}) for n in range(257)]
        await peer.write(*modes)
        refused = await peer.answer(modes[-1])
        assert refused["error"]["code"] == -32600
        assert refused["error"]["data"] == {"limit": 256}
        assert (await peer.answer(modes[-2]))["result"] == {}


async def test_the_same_request_sent_twice_in_flight_runs_once(connect: Any) -> None:
    async with connect() as peer:
        await peer.initialize()
        session = await peer.new_session()
        prompt = peer.prompt(session, "sleep:0.2")
        other = {**peer.prompt(session, "echo:other"), "id": prompt["id"]}
        await peer.write(prompt, prompt, other)
        await peer.seen(lambda frame: frame.get("id") == prompt["id"] and "result" in frame)
        with anyio.move_on_after(0.2):
            await peer.seen(lambda frame: frame.get("id") == "never")
        errors = [answer["error"]["code"] for answer in peer.answers(prompt) if "error" in answer]
        assert errors == [-32600]
        assert len(peer.answers(prompt)) == 2
