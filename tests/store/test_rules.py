"""What holds with every store: who finds a session, who may write it, and what comes back."""

import threading
from functools import partial
from typing import Any

import anyio
import pytest

from acp_integration import AcpAgentSettings, PromptContext, acp_agent
from acp_integration.caller import Caller
from acp_integration.context.updates import MESSAGE, chunk
from acp_integration.store import StoredSession
from acp_integration.store.journal import MOST_WAITING
from acp_integration.store.sqlite import SqliteTables
from acp_integration.store.transcript import replay
from tests.store.conftest import sqlite_store
from tests.store.remembering import Remembering


async def reopen(client: Any, method: str, session: str) -> Any:
    return await client.call(f"session/{method}", sessionId=session, cwd="/x", mcpServers=[])


async def started(client: Any) -> str:
    await client.initialize()
    session: str = await client.new_session("/x")
    return session


@pytest.mark.parametrize("method", ["load", "resume"])
async def test_history_and_state_come_back(store: Any, connect: Any, method: str):
    async with connect(store) as client:
        session = await started(client)
        await client.prompt(session, "hello")
    async with connect(store) as client:
        await client.initialize()
        await reopen(client, method, session)
        await client.prompt(session, "first")
        assert client.text.endswith("You first said: hello")
        await client.prompt(session, "count")
        assert client.text.endswith("This is turn 3")


async def test_a_load_replays_prompts_and_updates_merged_and_in_order_before_its_answer(store: Any, connect: Any):
    async with connect(store) as client:
        session = await started(client)
        await client.prompt(session, "talk:60")
        thoughts = [update["content"]["text"] for update in client.updates("agent_thought_chunk")]
        said = client.text
        answered = [index for index, frame in enumerate(client.log) if "result" in frame][-1]
        assert answered == len(client.log) - 1  # nothing of the turn behind its answer
    async with connect(store) as client:
        await client.initialize()
        await reopen(client, "load", session)
        assert "result" in client.log[-1]
        assert client.text == said
        assert [update["content"]["text"] for update in client.updates("agent_thought_chunk")] == thoughts
        assert client.updates()[0]["content"]["text"] == "talk:60"
        assert len(client.updates()) < 15
        assert all("_meta" not in update for update in client.updates())


async def test_modes_and_options_come_back(store: Any, connect: Any):
    async with connect(store) as client:
        session = await started(client)
        await client.call("session/set_mode", sessionId=session, modeId="code")
        await client.call("session/set_config_option", sessionId=session, configId="m", value="b")
    async with connect(store) as client:
        await client.initialize()
        answer = await reopen(client, "resume", session)
        assert client.updates() == []
    assert answer["modes"]["currentModeId"] == "code"
    assert answer["configOptions"][0]["currentValue"] == "b"


async def test_the_latest_load_holds_a_session(store: Any, connect: Any):
    async with connect(store) as one, connect(store) as two:
        session = await started(one)
        await two.initialize()
        await reopen(two, "load", session)
        error = (await one.answer(one.start_prompt(session)))["error"]
        assert error["code"] == -32600
        assert "session is open elsewhere" in error["message"]
        assert await two.prompt(session) == {"stopReason": "end_turn"}
        await reopen(one, "load", session)
        assert await one.prompt(session) == {"stopReason": "end_turn"}


async def test_a_turn_of_a_session_that_is_opened_elsewhere_is_cancelled_and_says_no_more(store: Any, connect: Any):
    async with connect(store) as one, connect(store) as two:
        session = await started(one)
        turn = one.start_prompt(session, "stubborn")
        await one.seen(lambda frame: "stubborn" in str(frame))
        await two.initialize()
        await reopen(two, "load", session)
        said = len(two.updates())
        # Told while it goes on sending; one that never ends is left behind after the grace period.
        answer = await one.seen(lambda frame: frame.get("id") == turn)
        assert answer["result"] == {"stopReason": "cancelled"}
        assert two.updates()[-1]["_meta"] == {"acp_integration": {"cut": True}}
        await reopen(two, "load", session)
        assert len(two.updates()) == 2 * said


async def test_loading_again_on_the_same_connection_ends_the_turn_first(store: Any, connect: Any):
    async with connect(store) as client:
        session = await started(client)
        turn = client.start_prompt(session, "wait")
        await client.seen(lambda frame: "waiting" in str(frame))
        await reopen(client, "load", session)
        assert (await client.answer(turn))["result"] == {"stopReason": "cancelled"}
        assert all("_meta" not in update for update in client.updates())
        assert await client.prompt(session) == {"stopReason": "end_turn"}


async def test_nobody_sees_loads_resumes_or_deletes_anothers_session(store: Any, connect: Any):
    async with (
        connect(store, Caller(principal="ada")) as ada,
        connect(store, Caller(principal="bob")) as bob,
        connect(store) as nobody,
    ):
        session = await started(ada)
        for other in (bob, nobody):
            await other.initialize()
            assert await other.call("session/list") == {"sessions": []}
            for method in ("load", "resume"):
                error = await other.error(f"session/{method}", sessionId=session, cwd="/x", mcpServers=[])
                assert error["code"] == -32002
            assert await other.call("session/delete", sessionId=session) == {}
        assert len((await ada.call("session/list"))["sessions"]) == 1
        assert await ada.prompt(session) == {"stopReason": "end_turn"}


async def test_a_list_is_paged_newest_first_and_by_directory(store: Any, connect: Any):
    async with connect(store) as client:
        await client.initialize()
        made = [await client.new_session(f"/{number % 2}") for number in range(5)]
        await client.prompt(made[0], "title:A title")
        found, cursor = [], {}
        while True:
            page = await client.call("session/list", **cursor)
            found += page["sessions"]
            if "nextCursor" not in page:
                break
            cursor = {"cursor": page["nextCursor"]}
        assert [session["sessionId"] for session in found] == [made[0], made[4], made[3], made[2], made[1]]
        assert found[0]["title"] == "A title"
        assert all(session["updatedAt"].endswith("Z") for session in found)
        of_directory = (await client.call("session/list", cwd="/1"))["sessions"]
        assert [session["sessionId"] for session in of_directory] == [made[3], made[1]]
        assert await client.call("session/list", cwd="/none") == {"sessions": []}
        for cursor in ("forged", "WyJ4IiwieSJd", "", "é"):
            assert (await client.error("session/list", cursor=cursor))["code"] == -32602


async def test_delete_is_a_success_again_and_again_and_ends_what_was_open(store: Any, connect: Any):
    async with connect(store) as one, connect(store) as two:
        session = await started(one)
        await two.initialize()
        for _ in range(2):
            assert await two.call("session/delete", sessionId=session) == {}
        assert (await one.answer(one.start_prompt(session)))["error"]["code"] == -32600
        assert (await one.error("session/load", sessionId=session, cwd="/x", mcpServers=[]))["code"] == -32002
        assert (await one.call("session/list")) == {"sessions": []}


async def test_what_was_said_before_a_question_arrives_before_it(store: Any, connect: Any):
    async with connect(store) as client:
        session = await started(client)
        client.answers["session/request_permission"] = {"outcome": {"outcome": "selected", "optionId": "allow"}}
        await client.prompt(session, "ask")
        order = [frame["params"]["update"]["sessionUpdate"] if "update" in frame["params"] else frame["method"]
                 for frame in client.log if "params" in frame]  # fmt: skip
        assert order[:3] == ["agent_message_chunk", "tool_call", "session/request_permission"]


async def test_nothing_leaves_behind_an_answer_that_was_forced(store: Any, connect: Any):
    settings = AcpAgentSettings.from_mapping({"acp.agent.cancel-grace-period": "50ms"})
    async with connect(store, settings=settings) as client:
        session = await started(client)
        turn = client.start_prompt(session, "stubborn")
        await client.seen(lambda frame: "stubborn" in str(frame))
        client.notify("session/cancel", sessionId=session)
        assert (await client.answer(turn))["result"] == {"stopReason": "cancelled"}
        assert await client.prompt(session, "count") == {"stopReason": "end_turn"}
        answered = next(place for place, frame in enumerate(client.log) if frame.get("id") == turn)
        later = [frame["params"]["update"]["content"]["text"] for frame in client.log[answered:] if "params" in frame]
        assert later == ["This is turn 2"]


async def test_a_state_that_is_no_json_fails_its_turn_and_no_other(store: Any, connect: Any):
    async with connect(store) as client:
        session = await started(client)
        answer = await client.answer(client.start_prompt(session, "unsayable"))
        assert answer["error"]["code"] == -32603
    async with connect(store) as client:
        await client.initialize()
        await reopen(client, "load", session)
        assert await client.prompt(session) == {"stopReason": "end_turn"}


async def test_an_update_is_not_replayed_to_a_client_that_cannot_take_it(store: Any, connect: Any):
    @acp_agent
    async def noticing(turn: PromptContext) -> None:
        await turn.send_update({"sessionUpdate": "notice", "title": "x", "severity": "info"})

    async with connect(store, agent=noticing) as client:
        await client.initialize(session={"notices": {}})
        session = await client.new_session()
        await client.prompt(session)
        assert len(client.updates("notice")) == 1
    for capabilities, count in (({}, 0), ({"session": {"notices": {}}}, 1)):
        async with connect(store, agent=noticing) as client:
            await client.initialize(**capabilities)
            await reopen(client, "load", session)
            assert len(client.updates("notice")) == count


async def test_what_was_said_between_turns_is_kept_and_leaves_before_the_connection_ends(store: Any, connect: Any):
    agent = Remembering()
    async with connect(store, agent=agent) as client:
        session = await started(client)
        await client.prompt(session)
        assert agent.latest is not None
        for number in range(50):
            await agent.latest.send_message(f"{number};")
        client.transport.end_input()
        await client.seen(lambda frame: "49;" in str(frame))
        said = client.text
    assert said == "echo: hello" + "".join(f"{number};" for number in range(50))
    async with connect(store) as client:
        await client.initialize()
        await reopen(client, "load", session)
        assert client.text == said


async def test_the_pieces_of_a_message_are_merged_when_its_turn_ends(database: Any, connect: Any):
    async with connect(sqlite_store(database)) as client:
        session = await started(client)
        await client.prompt(session, "talk:120")
    kinds = {entry.kind for entry in SqliteTables(database).entries(session)}
    assert kinds == {"prompt", "update"}


async def test_a_new_session_never_takes_the_place_of_a_stored_one(database: Any, bound: Any):
    store = sqlite_store(database)
    with bound():
        await store.create(StoredSession(id="one", owner="ada", cwd="/"))
        with pytest.raises(ValueError, match="needs a new id"):
            await store.create(StoredSession(id="one", owner="bob", cwd="/"))
        assert await store.open("one", "bob") is None


async def test_a_store_that_fails_sends_nothing_and_answers_internal_error(database: Any, connect: Any):
    store = sqlite_store(database)
    async with connect(store) as client:
        session = await started(client)
        write, store._tables.write = store._tables.write, broken  # type: ignore[method-assign]
        answer = await client.answer(client.start_prompt(session))
        assert answer["error"]["code"] == -32603
        assert client.updates() == []
        store._tables.write = write  # type: ignore[method-assign]
        assert await client.prompt(session) == {"stopReason": "end_turn"}
        assert client.text == "echo: hello"


def broken(changes: Any) -> Any:
    raise OSError("the disk is full")


async def test_a_slow_store_makes_the_sender_wait(database: Any, bound: Any):
    store, stuck = sqlite_store(database), threading.Event()
    with bound():
        journal = await store.create(StoredSession(id="one", owner=None, cwd="/"))
        write = store._tables.write
        store._tables.write = lambda changes: stuck.wait(5) and write(changes)  # type: ignore[method-assign]
        left: list[int] = []
        for number in range(MOST_WAITING):
            assert not journal.congested
            journal.put(chunk(MESSAGE, "x"), partial(left.append, number))
        assert journal.congested
        stuck.set()
        await journal.settle()
        assert not journal.congested
        assert left == [*range(MOST_WAITING)]


async def test_an_update_leaves_behind_the_commit_that_keeps_it(database: Any, bound: Any):
    with bound():
        journal = await sqlite_store(database).create(StoredSession(id="one", owner=None, cwd="/"))
        observer, seen, done = SqliteTables(database), [], anyio.Event()

        def leave(number: int) -> None:
            texts = [update["content"]["text"] for update in replay(observer.entries("one"))]
            seen.append(f"{number};" in "".join(texts))
            if len(seen) == 200:
                done.set()

        for number in range(200):
            journal.put(chunk(MESSAGE, f"{number};"), partial(leave, number))
            await anyio.sleep(0.001 if number % 20 == 0 else 0)
        await done.wait()
    assert all(seen)
