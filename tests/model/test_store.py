"""With a session store an agent needs no handler to load, resume, list, close and delete."""

from typing import Any

import pytest

from acp_integration import AcpAgentSettings, PromptContext, acp_agent, on
from acp_integration.caller import Caller
from acp_integration.errors import ConfigurationError
from acp_integration.store import MemoryStore

CONFIG = [{"id": "web", "name": "Web"}, {"id": "m", "name": "M", "options": [{"value": v, "name": v} for v in "ab"]}]


@acp_agent(modes=["ask", "code"], config_options=CONFIG)
async def counter(turn: PromptContext):
    count = turn.session.state["count"] = turn.session.state.get("count", 0) + 1
    history = await turn.session.history()
    await turn.send_thought("hm")
    first = next(update.text for update in history if update.kind == "user_message_chunk")
    yield f"turn {count}, first said {first}, mode {turn.mode}, m={turn.options['m']}"


@pytest.fixture
def factory(build):
    return build(counter, store=MemoryStore(page_size=2))


async def reopen(client: Any, method: str, session: str) -> Any:
    return await client.call(f"session/{method}", sessionId=session, cwd="/x", mcpServers=[])


async def a_conversation(client: Any) -> str:
    await client.initialize()
    session = await client.new_session("/x")
    await client.call("session/set_mode", sessionId=session, modeId="code")
    await client.call("session/set_config_option", sessionId=session, configId="m", value="b")
    await client.prompt(session, "alpha\nbeta")
    return session


async def test_what_the_store_can_do_is_advertised(connect_to, factory):
    async with connect_to(factory) as client:
        capabilities = (await client.initialize())["agentCapabilities"]
    assert capabilities["loadSession"]
    assert capabilities["sessionCapabilities"] == {"resume": {}, "list": {}, "close": {}, "delete": {}}


async def test_a_load_replays_everything_in_order_before_its_answer(connect_to, factory):
    async with connect_to(factory) as client:
        session = await a_conversation(client)
        said = client.updates()
    async with connect_to(factory) as client:
        await client.initialize()
        answer = await reopen(client, "load", session)
        prompt = {"sessionUpdate": "user_message_chunk", "content": {"type": "text", "text": "alpha\nbeta"}}
        assert client.updates() == [prompt, *said]
        assert "result" in client.log[-1]
        assert answer["modes"]["currentModeId"] == "code"
        assert [option["currentValue"] for option in answer["configOptions"]] == ["b"]
        await client.prompt(session, "again")
        assert client.text.endswith("turn 2, first said alpha\nbeta, mode code, m=b")
        count = len(client.updates())
    async with connect_to(factory) as client:
        await client.initialize()
        await reopen(client, "load", session)
        assert len(client.updates()) == count + 1


async def test_a_resume_replays_nothing_and_brings_the_state_back(connect_to, factory):
    async with connect_to(factory) as client:
        session = await a_conversation(client)
    async with connect_to(factory) as client:
        await client.initialize()
        answer = await client.call("session/resume", sessionId=session, cwd="/x")
        assert client.updates() == []
        assert answer["modes"]["currentModeId"] == "code"
        await client.prompt(session, "again")
        assert client.text.startswith("turn 2")


async def test_a_session_that_is_not_there_cannot_be_opened(connect_to, factory):
    async with connect_to(factory) as client:
        await client.initialize()
        for method in ("load", "resume"):
            error = await client.error(f"session/{method}", sessionId="no", cwd="/x", mcpServers=[])
            assert (error["code"], error["data"]) == (-32002, {"sessionId": "no"})
        assert (await client.answer(client.start_prompt("no")))["error"]["code"] == -32002


async def test_a_list_is_paged_newest_first_and_by_directory(connect_to, factory):
    async with connect_to(factory) as client:
        await client.initialize()
        made = [await client.new_session(f"/{number % 2}") for number in range(5)]
        await client.prompt(made[0], "the first line\nthe second")
        found: list[Any] = []
        cursor: dict[str, Any] = {}
        while True:
            page = await client.call("session/list", **cursor)
            found += page["sessions"]
            if "nextCursor" not in page:
                break
            cursor = {"cursor": page["nextCursor"]}
        assert [session["sessionId"] for session in found] == [made[0], made[4], made[3], made[2], made[1]]
        assert found[0]["title"] == "the first line"
        assert found[0]["updatedAt"].endswith("Z")
        of_directory = await client.call("session/list", cwd="/1")
        assert [session["sessionId"] for session in of_directory["sessions"]] == [made[3], made[1]]
        assert (await client.call("session/list", cwd="/none")) == {"sessions": []}
        assert (await client.error("session/list", cursor="forged"))["code"] == -32602


async def test_a_closed_session_can_be_loaded_and_a_deleted_one_cannot(connect_to, factory):
    async with connect_to(factory) as client:
        session = await a_conversation(client)
        assert await client.call("session/close", sessionId=session) == {}
        assert (await client.answer(client.start_prompt(session)))["error"]["code"] == -32002
        await reopen(client, "load", session)
        for _ in range(2):
            assert await client.call("session/delete", sessionId=session) == {}
        assert (await client.error("session/load", sessionId=session, cwd="/x", mcpServers=[]))["code"] == -32002
        assert (await client.call("session/list"))["sessions"] == []


async def test_the_latest_load_owns_a_session(connect_to, factory):
    async with connect_to(factory) as one, connect_to(factory) as two:
        session = await a_conversation(one)
        await two.initialize()
        await reopen(two, "load", session)
        error = (await one.answer(one.start_prompt(session)))["error"]
        assert error == {"code": -32600, "message": "The session is open elsewhere", "data": {"sessionId": session}}
        assert await two.prompt(session) == {"stopReason": "end_turn"}
        await reopen(one, "load", session)
        assert await one.prompt(session) == {"stopReason": "end_turn"}


async def test_a_session_belongs_to_its_principal(connect_to, factory):
    async with connect_to(factory, Caller(principal="ada")) as ada, connect_to(factory, Caller(principal="bob")) as bob:
        session = await a_conversation(ada)
        await bob.initialize()
        assert (await bob.call("session/list"))["sessions"] == []
        assert (await bob.error("session/load", sessionId=session, cwd="/x", mcpServers=[]))["code"] == -32002
        assert await bob.call("session/delete", sessionId=session) == {}
        assert len((await ada.call("session/list"))["sessions"]) == 1


async def test_an_agents_own_handler_wins(serve):
    @acp_agent
    class Agent:
        @on.list_sessions
        async def listed(self) -> dict[str, Any]:
            return {"sessions": [{"sessionId": "mine", "cwd": "/x"}]}

        @on.prompt
        async def answer(self, turn: PromptContext): ...

    async with serve(Agent, store=MemoryStore()) as client:
        await client.initialize()
        await client.new_session()
        assert [session["sessionId"] for session in (await client.call("session/list"))["sessions"]] == ["mine"]


async def test_the_settings_name_the_store(serve, build):
    settings = AcpAgentSettings.from_mapping({"acp.agent.session-store": "memory:"})
    async with serve(counter, settings) as client:
        assert (await client.initialize())["agentCapabilities"]["loadSession"]
    with pytest.raises(ConfigurationError, match="session-store=django is not available here"):
        build(counter, settings=AcpAgentSettings.from_mapping({"acp.agent.session-store": "django"}))


async def test_the_oldest_sessions_are_forgotten(serve):
    async with serve(counter, store=MemoryStore(most_sessions=2)) as client:
        await client.initialize()
        made = [await client.new_session() for _ in range(3)]
        listed = [session["sessionId"] for session in (await client.call("session/list"))["sessions"]]
    assert listed == made[:0:-1]


async def test_without_a_store_there_is_no_history(serve):
    @acp_agent
    async def agent(turn: PromptContext):
        return str(len(await turn.session.history()))

    async with serve(agent) as client:
        await client.ask()
        assert client.text == "0"
