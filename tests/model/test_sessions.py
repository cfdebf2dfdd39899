"""A session's record, modes and options follow what was answered; what belongs to no open session is not sent."""

from typing import Any

import pytest

from acp_integration import AcpSession, PromptContext, RequestError, acp_agent, on
from acp_integration.errors import CapabilityMissing

OPTIONS = [
    {"id": "model", "name": "Model", "options": [{"value": "fast", "name": "Fast"}, {"value": "good", "name": "Good"}]},
    {
        "id": "style",
        "name": "Style",
        "options": [{"group": "g", "name": "G", "options": [{"value": "terse", "name": "Terse"}]}],
    },
    {"id": "web", "name": "Web"},
]


@acp_agent(modes=["ask", {"id": "code", "name": "Code"}], config_options=OPTIONS)
async def chooser(turn: PromptContext):
    if turn.text.startswith("mode:"):
        await turn.send_mode(turn.text.removeprefix("mode:"))
    if turn.text == "options":
        await turn.send_config_options({"model": "good", "web": True})
    return f"{turn.mode}>{turn.session.mode} {turn.session.options}"


async def test_a_new_session_records_what_the_client_asked_for(serve):
    seen: list[Any] = []

    @acp_agent
    async def agent(turn: PromptContext):
        seen.extend([turn.session.cwd, turn.session.additional_directories, turn.session.mcp_servers[0].name])

    async with serve(agent) as client:
        await client.initialize()
        server = {"name": "files", "command": "/bin/files", "args": [], "env": []}
        answer = await client.call("session/new", cwd="/a", mcpServers=[server], additionalDirectories=["/b"])
        await client.prompt(answer["sessionId"])
        other = await client.new_session()
    assert seen == ["/a", ("/b",), "files"]
    assert set(answer) == {"sessionId"}
    assert other != answer["sessionId"]


@pytest.mark.parametrize("params", [{"cwd": "relative"}, {"cwd": "/x", "additionalDirectories": ["relative"]}])
async def test_a_relative_directory_is_refused(serve, params):
    async with serve(chooser) as client:
        await client.initialize()
        error = await client.error("session/new", mcpServers=[], **params)
    assert error["code"] == -32602
    assert "must be an absolute path" in error["message"]


async def test_a_system_prompt_that_would_be_ignored_is_refused(serve):
    async with serve(chooser) as client:
        await client.initialize()
        prompt = {"mode": "append", "content": [{"type": "text", "text": "Be nice"}]}
        assert (await client.error("session/new", cwd="/x", mcpServers=[], systemPrompt=prompt))["code"] == -32602


async def test_modes_are_declared_once_and_kept_in_step(serve):
    async with serve(chooser) as client:
        await client.initialize()
        answer = await client.call("session/new", cwd="/x", mcpServers=[])
        assert answer["modes"] == {
            "currentModeId": "ask",
            "availableModes": [{"id": "ask", "name": "Ask"}, {"id": "code", "name": "Code"}],
        }
        session = answer["sessionId"]
        assert await client.call("session/set_mode", sessionId=session, modeId="code") == {}
        assert (await client.error("session/set_mode", sessionId=session, modeId="nope"))["code"] == -32602
        await client.prompt(session, "hello")
        assert client.text.startswith("code>code")
        await client.prompt(session, "mode:ask")
        assert "code>ask" in client.text
        assert client.updates("current_mode_update") == [
            {"sessionUpdate": "current_mode_update", "currentModeId": "ask"}
        ]
        assert (await client.answer(client.start_prompt(session, "mode:nope")))["error"]["code"] == -32602


async def test_setting_an_option_answers_with_the_complete_list(serve, everything):
    async with serve(chooser) as client:
        await client.initialize(**everything)
        answer = await client.call("session/new", cwd="/x", mcpServers=[])
        assert {option["id"]: option["currentValue"] for option in answer["configOptions"]} == {
            "model": "fast",
            "style": "terse",
            "web": False,
        }
        session = answer["sessionId"]
        answer = await client.call("session/set_config_option", sessionId=session, configId="model", value="good")
        assert [option["currentValue"] for option in answer["configOptions"]] == ["good", "terse", False]
        for bad in ({"configId": "model", "value": "nope"}, {"configId": "nope", "value": "x"}):
            assert (await client.error("session/set_config_option", sessionId=session, **bad))["code"] == -32602
        await client.prompt(session, "options")
        assert client.updates("config_option_update")[0]["configOptions"][2]["currentValue"] is True


async def test_a_boolean_option_is_for_clients_that_announced_it(serve):
    async with serve(chooser) as client:
        await client.initialize()
        answer = await client.call("session/new", cwd="/x", mcpServers=[])
        assert [option["id"] for option in answer["configOptions"]] == ["model", "style"]
        await client.prompt(answer["sessionId"], "options")
        update = client.updates("config_option_update")[0]
        assert [option["id"] for option in update["configOptions"]] == ["model", "style"]


async def test_what_a_new_session_handler_sends_comes_behind_its_answer(serve):
    @acp_agent
    class Agent:
        @on.new_session
        async def new(self, session: AcpSession):
            await session.send_commands({"count": "Counts"})
            assert session.cwd == "/somewhere"
            return {"sessionId": "chosen"}

        @on.prompt
        async def answer(self, turn: PromptContext): ...

    async with serve(Agent) as client:
        await client.initialize()
        await client.new_session()
        await client.seen(lambda frame: frame.get("method") == "session/update")
    answer, update = client.log[1:]
    assert answer["result"] == {"sessionId": "chosen"}
    assert update["params"]["sessionId"] == "chosen"
    assert update["params"]["update"]["availableCommands"] == [{"name": "count", "description": "Counts"}]


async def test_a_handler_that_was_given_the_session_needs_no_answer(serve):
    @acp_agent(modes=["a"])
    class Agent:
        @on.new_session
        async def new(self, session: AcpSession):
            session.state["made"] = session.id

        @on.prompt
        async def answer(self, turn: PromptContext):
            return turn.session.state["made"]

    async with serve(Agent) as client:
        await client.initialize()
        answer = await client.call("session/new", cwd="/x", mcpServers=[])
        assert answer["modes"]["currentModeId"] == "a"
        await client.prompt(answer["sessionId"])
        assert client.text == answer["sessionId"]


class Keeper:
    """An agent that keeps its sessions itself."""

    @on.load_session
    async def load(self, session: AcpSession):
        if session.id == "gone":
            raise RequestError(-32002, "Unknown session")
        await session.send_user_message("before")
        await session.send_message("after")

    @on.resume_session
    async def resume(self, session_id: str): ...
    @on.fork_session
    async def fork(self, session_id: str) -> dict[str, Any]:
        return {"sessionId": f"fork of {session_id}"}

    @on.close_session
    async def close(self, session_id: str): ...
    @on.delete_session
    async def delete(self, session_id: str): ...
    @on.prompt
    async def answer(self, turn: PromptContext):
        return f"in {turn.session.cwd}"


async def test_a_load_replays_before_its_answer_and_opens_the_session(serve):
    async with serve(acp_agent(Keeper)) as client:
        await client.initialize()
        await client.call("session/load", sessionId="old", cwd="/x", mcpServers=[])
        assert [update["sessionUpdate"] for update in client.updates()] == ["user_message_chunk", "agent_message_chunk"]
        assert "result" in client.log[-1]
        await client.prompt("old")
        assert client.text == "afterin /x"


async def test_a_load_that_failed_opens_nothing(serve):
    async with serve(acp_agent(Keeper)) as client:
        await client.initialize()
        assert (await client.error("session/load", sessionId="gone", cwd="/x", mcpServers=[]))["code"] == -32002
        assert (await client.answer(client.start_prompt("gone")))["error"]["code"] == -32002


@pytest.mark.parametrize("end", ["session/close", "session/delete"])
async def test_an_ended_session_is_open_no_more(serve, end):
    async with serve(acp_agent(Keeper)) as client:
        await client.initialize()
        await client.call("session/resume", sessionId="old", cwd="/x")
        await client.prompt("old")
        assert await client.call(end, sessionId="old") == {}
        assert (await client.answer(client.start_prompt("old")))["error"]["code"] == -32002
        if end == "session/delete":
            assert await client.call(end, sessionId="never there") == {}


async def test_a_fork_is_a_session(serve):
    async with serve(acp_agent(Keeper)) as client:
        await client.initialize()
        session = await client.new_session()
        forked = (await client.call("session/fork", sessionId=session, cwd="/forked", mcpServers=[]))["sessionId"]
        await client.prompt(forked)
        assert client.text == "in /forked"


async def test_updates_between_turns_and_after_the_end(serve):
    kept: list[AcpSession] = []

    @acp_agent
    class Agent:
        @on.prompt
        async def answer(self, turn: PromptContext):
            kept.append(turn.session)

        @on.ext_request("_poke")
        async def poke(self):
            await kept[0].send_message("poked")
            return {}

        @on.close_session
        async def close(self, session_id: str): ...

    async with serve(Agent) as client:
        await client.initialize()
        session = await client.new_session()
        await client.prompt(session)
        await client.call("_poke")
        assert client.text == "poked"
        await client.call("session/close", sessionId=session)
        await client.call("_poke")
        assert client.text == "poked"


SENDS: dict[str, Any] = {
    "agent_message_chunk": lambda session: session.send_message("m", message_id="1"),
    "agent_thought_chunk": lambda session: session.send_thought("t"),
    "user_message_chunk": lambda session: session.send_user_message("u"),
    "plan": lambda session: session.send_plan(["first", {"content": "second", "status": "completed"}]),
    "available_commands_update": lambda session: session.send_commands([{"name": "n", "description": "d"}]),
    "usage_update": lambda session: session.send_usage(10, 100, cost=0.5),
    "session_info_update": lambda session: session.send_session_info(title=None),
    "notice": lambda session: session.send_update(NOTICE),
}
NOTICE = {"sessionUpdate": "notice", "severity": "info", "title": "x"}
EXPECTED = {
    "agent_message_chunk": {"content": {"type": "text", "text": "m"}, "messageId": "1"},
    "agent_thought_chunk": {"content": {"type": "text", "text": "t"}},
    "user_message_chunk": {"content": {"type": "text", "text": "u"}},
    "plan": {
        "entries": [
            {"content": "first", "priority": "medium", "status": "pending"},
            {"content": "second", "priority": "medium", "status": "completed"},
        ]
    },
    "available_commands_update": {"availableCommands": [{"name": "n", "description": "d"}]},
    "usage_update": {"used": 10, "size": 100, "cost": {"amount": 0.5, "currency": "USD"}},
    "session_info_update": {"title": None},
}


@pytest.mark.parametrize("kind", SENDS)
@pytest.mark.parametrize("through", ["turn", "session"])
async def test_every_send_has_its_form(serve, everything, kind, through):
    @acp_agent
    async def agent(turn: PromptContext):
        await SENDS[kind](turn if through == "turn" else turn.session)

    async with serve(agent) as client:
        await client.ask(**everything)
    (update,) = client.updates()
    assert update == {"sessionUpdate": kind, **EXPECTED.get(kind, NOTICE)}


async def test_a_gated_update_is_not_sent_to_a_client_that_did_not_announce_it(serve):
    @acp_agent
    async def agent(turn: PromptContext):
        with pytest.raises(CapabilityMissing, match=r"session\.notices"):
            await turn.send_update(NOTICE)

    async with serve(agent) as client:
        assert "result" in await client.ask()
        assert client.updates() == []


async def test_a_tool_call_is_kept_up_to_date_and_settled(serve, everything):
    @acp_agent
    async def agent(turn: PromptContext):
        async with turn.tool_call("Edit", kind="edit", raw_input={"a": 1}, locations=["/x"]) as call:
            await call.add("text")
            await call.add_diff("/x", "new", "old")
            await call.add_terminal("t")
            await call.add_location("/y", 3)
            await call.set_title("Edited")
            await call.set_output([1])

    async with serve(agent) as client:
        await client.ask()
    first, *changes, last = client.updates()
    assert (first["title"], first["status"], first["rawInput"]) == ("Edit", "in_progress", {"a": 1})
    assert first["locations"] == [{"path": "/x"}]
    assert changes[2]["content"] == [
        {"type": "content", "content": {"type": "text", "text": "text"}},
        {"type": "diff", "path": "/x", "newText": "new", "oldText": "old"},
        {"type": "terminal", "terminalId": "t"},
    ]
    assert last["status"] == "completed"
    assert {update["toolCallId"] for update in client.updates()} == {first["toolCallId"]}


async def test_a_tool_call_fails_with_its_block_or_when_told(serve):
    @acp_agent
    async def agent(turn: PromptContext):
        async with turn.tool_call("told") as call:
            await call.fail("because")
        async with turn.tool_call("raised"):
            raise RuntimeError

    async with serve(agent) as client:
        await client.ask()
    statuses = [update["status"] for update in client.updates("tool_call_update") if "status" in update]
    assert statuses == ["failed", "failed"]


async def test_a_slash_command_is_parsed(serve):
    seen = []

    @acp_agent
    async def agent(turn: PromptContext):
        seen.append(turn.command and (turn.command.name, turn.command.argument))

    async with serve(agent) as client:
        await client.ask("/count  py files ")
        session = await client.new_session()
        await client.prompt(session, "no /command")
        await client.prompt(session, "/usr/bin")
        await client.prompt(session, "/now")
    assert seen == [("count", "py files"), None, None, ("now", "")]
