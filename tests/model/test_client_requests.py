"""Requests to the client: checked against its capabilities, ended by the turn's cancel, and nothing stays open."""

import threading
from typing import Any

import anyio
import pytest

from acp_integration import AcpAgentSettings, PromptContext, SyncPromptContext, acp_agent, on
from acp_integration.context import ConnectedClient
from acp_integration.errors import CapabilityMissing, TurnCancelled

ACTIONS: dict[str, Any] = {
    "read": lambda turn: turn.read_text_file("a.txt", line=2, limit=3),
    "write": lambda turn: turn.write_text_file("/a.txt", "new"),
    "execute": lambda turn: turn.execute("make", "test", env={"A": "1"}, cwd="sub"),
    "permission": lambda turn: turn.ask_permission("Do it", kind="edit"),
    "choice": lambda turn: turn.ask_choice("Which?", ["red", "blue"]),
    "form": lambda turn: turn.elicit_form("Who?", {"name": {"type": "string"}}),
    "url": lambda turn: turn.elicit_url("Visit", "https://example.org", elicitation_id="e"),
    "ext": lambda turn: turn.ext_request("_thing", {"a": 1}),
}
GATED = {
    "read": "fs.readTextFile",
    "write": "fs.writeTextFile",
    "execute": "terminal",
    "form": "elicitation.form",
    "url": "elicitation.url",
}
ANSWERS = {
    "fs/read_text_file": {"content": "text"},
    "fs/write_text_file": None,
    "terminal/create": {"terminalId": "t"},
    "terminal/wait_for_exit": {"exitCode": 0},
    "terminal/output": {"output": "done", "truncated": False, "exitStatus": {"exitCode": 0}},
    "terminal/release": {},
    "terminal/kill": {},
    "session/request_permission": {"outcome": {"outcome": "selected", "optionId": "allow"}},
    "elicitation/create": {"action": "accept", "content": {"name": "Ada"}},
    "_thing": {"b": 2},
}
FIRST = {
    "read": "fs/read_text_file",
    "write": "fs/write_text_file",
    "execute": "terminal/create",
    "permission": "session/request_permission",
    "choice": "session/request_permission",
    "form": "elicitation/create",
    "url": "elicitation/create",
    "ext": "_thing",
}


@acp_agent
class Async:
    seen: list[Any]

    def __init__(self):
        self.seen = []

    @on.prompt
    async def answer(self, turn: PromptContext):
        try:
            self.seen.append(await ACTIONS[turn.text](turn))
        except Exception as error:
            self.seen.append(error)
            raise


@acp_agent
class Sync:
    def __init__(self):
        self.seen = []

    @on.prompt
    def answer(self, turn: SyncPromptContext):
        try:
            self.seen.append(ACTIONS[turn.text](turn))
        except Exception as error:
            self.seen.append(error)
            raise


@pytest.fixture(params=[Async, Sync], ids=["async", "sync"])
def agent(request):
    return request.param()


@pytest.mark.parametrize("action", ACTIONS)
async def test_the_answer_of_the_client_is_what_a_call_returns(serve, agent, everything, action):
    async with serve(agent) as client:
        client.answers.update(ANSWERS)
        if action == "choice":
            client.answers["session/request_permission"] = {"outcome": {"outcome": "selected", "optionId": "1"}}
        assert "result" in await client.ask(action, **everything)
    (value,) = agent.seen
    shown = {
        "read": "text",
        "write": None,
        "permission": True,
        "choice": "blue",
        "ext": {"b": 2},
    }
    if action in shown:
        assert value == shown[action]
    elif action == "execute":
        assert (value.text, value.succeeded) == ("done", True)
    else:
        assert (value.accepted, value.content["name"]) == (True, "Ada")


@pytest.mark.parametrize("action", GATED)
async def test_nothing_is_sent_to_a_client_that_did_not_announce_it(serve, agent, action):
    async with serve(agent) as client:
        assert (await client.ask(action))["error"]["code"] == -32603
        assert client.requests == []
    (error,) = agent.seen
    assert isinstance(error, CapabilityMissing)
    assert error.capability == GATED[action]


@pytest.mark.parametrize("action", ACTIONS)
async def test_a_cancel_ends_a_call_that_the_client_never_answers(serve, agent, everything, action):
    async with serve(agent) as client:
        await client.initialize(**everything)
        session = await client.new_session()
        prompt = client.start_prompt(session, action)
        asked = await client.asked(FIRST[action])
        client.notify("session/cancel", sessionId=session)
        assert (await client.answer(prompt))["result"]["stopReason"] == "cancelled"
        withdrawn = [frame["params"] for frame in client.log if frame.get("method") == "$/cancel_request"]
        assert withdrawn == [{"requestId": asked["id"]}]
        client.answers.update(ANSWERS)
        assert await client.prompt(session, "ext") == {"stopReason": "end_turn"}
    value = agent.seen[0]
    if action == "permission":
        assert value is False
    elif action == "choice":
        assert value is None
    elif action in ("form", "url"):
        assert (value.action, value.content) == ("cancel", {})
    else:
        assert isinstance(value, TurnCancelled)


async def test_asked_after_the_cancel_nothing_is_sent(serve, everything):
    seen = []

    @acp_agent
    class Agent:
        @on.prompt(cancellation="cooperative")
        async def answer(self, turn: PromptContext):
            await turn.send_message("waiting")
            await turn.wait_cancelled()
            seen.append(await turn.request_permission("call", [{"optionId": "a", "name": "A", "kind": "allow_once"}]))
            with pytest.raises(TurnCancelled):
                await turn.execute("ls")

    async with serve(Agent) as client:
        await client.initialize(**everything)
        session = await client.new_session()
        prompt = client.start_prompt(session)
        await client.seen(lambda frame: frame.get("method") == "session/update")
        client.notify("session/cancel", sessionId=session)
        await client.answer(prompt)
        assert client.requests == []
    assert seen[0].cancelled


async def test_a_late_answer_is_dropped(serve, agent, everything):
    async with serve(agent) as client:
        await client.initialize(**everything)
        session = await client.new_session()
        prompt = client.start_prompt(session, "permission")
        asked = await client.asked("session/request_permission")
        client.notify("session/cancel", sessionId=session)
        await client.answer(prompt)
        client.write(id=asked["id"], result=ANSWERS["session/request_permission"])
        client.answers.update(ANSWERS)
        assert (await client.prompt(session, "ext"))["stopReason"] == "end_turn"


async def test_a_permission_is_announced_and_settled_as_a_tool_call(serve, agent):
    async with serve(agent) as client:
        client.answers.update(ANSWERS)
        await client.ask("permission")
    announced, settled = client.updates()
    assert (announced["sessionUpdate"], announced["status"], announced["kind"]) == ("tool_call", "pending", "edit")
    assert (settled["sessionUpdate"], settled["status"]) == ("tool_call_update", "completed")
    asked = next(frame for frame in client.log if frame.get("method") == "session/request_permission")
    assert asked["params"]["toolCall"] == {"toolCallId": announced["toolCallId"]}


async def test_a_permission_that_was_cancelled_is_settled_as_failed(serve, agent):
    async with serve(agent) as client:
        client.answers["session/request_permission"] = {"outcome": {"outcome": "cancelled"}}
        await client.ask("permission")
    assert client.updates("tool_call_update")[-1]["status"] == "failed"


async def test_an_option_that_was_not_offered_is_an_error(serve, agent):
    async with serve(agent) as client:
        client.answers["session/request_permission"] = {"outcome": {"outcome": "selected", "optionId": "zzz"}}
        error = (await client.ask("choice"))["error"]
    assert (error["code"], error["data"]) == (-32603, "unoffered-option")


async def test_paths_are_absolute_on_the_wire(serve, agent, everything):
    async with serve(agent) as client:
        client.answers.update(ANSWERS)
        await client.ask("read", **everything)
        await client.prompt(await client.new_session(), "execute")
    read = next(frame for frame in client.log if frame.get("method") == "fs/read_text_file")["params"]
    assert (read["path"], read["line"], read["limit"]) == ("/somewhere/a.txt", 2, 3)
    created = next(frame for frame in client.log if frame.get("method") == "terminal/create")["params"]
    assert (created["command"], created["args"], created["cwd"]) == ("make", ["test"], "/somewhere/sub")
    assert created["env"] == [{"name": "A", "value": "1"}]


async def test_a_peers_error_reaches_the_handler_and_the_client(serve, agent, everything):
    async with serve(agent) as client:
        client.answers["fs/read_text_file"] = RuntimeError("no such file")
        assert (await client.ask("read", **everything))["error"]["message"] == "no such file"


@pytest.mark.parametrize("moment", ["terminal/create", "terminal/wait_for_exit", "terminal/output"])
async def test_a_terminal_is_released_once_whenever_the_turn_is_cancelled(serve, agent, everything, moment):
    async with serve(agent) as client:
        client.answers.update({**ANSWERS, moment: ...})
        await client.initialize(**everything)
        session = await client.new_session()
        prompt = client.start_prompt(session, "execute")
        asked = await client.asked(moment)
        client.notify("session/cancel", sessionId=session)
        await client.answer(prompt)
        client.write(id=asked["id"], result=ANSWERS[moment])
        await client.asked("terminal/release")
        client.answers.update(ANSWERS)
        await client.prompt(session, "ext")
        assert client.requests.count("terminal/release") == 1


async def test_a_terminal_is_released_when_the_block_fails(serve, everything):
    @acp_agent
    async def agent(turn: PromptContext):
        async with turn.terminal("sleep", "1") as terminal:
            assert terminal.id == "t"
            raise RuntimeError

    async with serve(agent) as client:
        client.answers.update(ANSWERS)
        await client.ask(**everything)
        assert client.requests == ["terminal/create", "terminal/release"]


async def test_a_command_that_takes_too_long_is_killed_and_released(serve, everything):
    @acp_agent
    async def agent(turn: PromptContext):
        await turn.execute("sleep", "1", timeout=0.01)

    async with serve(agent) as client:
        client.answers.update({**ANSWERS, "terminal/wait_for_exit": ...})
        assert "error" in await client.ask(**everything)
        assert client.requests == ["terminal/create", "terminal/wait_for_exit", "terminal/kill", "terminal/release"]


async def test_the_request_timeout_is_for_machines_and_not_for_people(serve, everything):
    settings = AcpAgentSettings.from_mapping({"acp.agent.request-timeout": "20ms"})
    agent = Async()
    async with serve(agent, settings) as client:
        assert "error" in await client.ask("read", **everything)
        assert "did not answer fs/read_text_file within 0.02 s" in str(agent.seen[0])
        prompt = client.start_prompt(await client.new_session(), "form")
        asked = await client.asked("elicitation/create")
        await anyio.sleep(0.05)
        client.write(id=asked["id"], result=ANSWERS["elicitation/create"])
        assert "result" in await client.answer(prompt)


async def test_a_person_has_the_interaction_timeout(serve, everything):
    settings = AcpAgentSettings.from_mapping({"acp.agent.interaction-timeout": "20ms"})
    async with serve(Async, settings) as client:
        assert "error" in await client.ask("form", **everything)


async def test_a_handler_of_any_kind_can_ask_the_client(serve, everything):
    @acp_agent(auth_methods=[{"id": "key", "name": "Key"}])
    class Agent:
        @on.authenticate
        async def authenticate(self, client: ConnectedClient, method_id: str):
            answer = await client.elicit_form("Key?", {"name": {"type": "string"}})
            assert answer.content["name"] == "Ada"

        @on.prompt
        async def answer(self, turn: PromptContext): ...

    async with serve(Agent) as client:
        client.answers.update(ANSWERS)
        await client.initialize(**everything)
        request = client.start("authenticate", methodId="key")
        assert (await client.answer(request))["result"] == {}
        asked = await client.asked("elicitation/create")
        assert asked["params"]["requestId"] == request


async def test_an_mcp_request_needs_a_server_in_the_client(serve, everything):
    errors = []

    @acp_agent
    async def agent(turn: PromptContext):
        try:
            await turn.mcp("mcp/message", {"serverId": "s", "requestId": "1", "method": "tools/list"})
        except CapabilityMissing as error:
            errors.append(error)

    async with serve(agent) as client:
        client.answers["mcp/message"] = {"tools": []}
        await client.ask()
        assert client.requests == []
        server = {"type": "acp", "name": "n", "serverId": "s"}
        session = (await client.call("session/new", cwd="/x", mcpServers=[server]))["sessionId"]
        await client.prompt(session)
        assert client.requests == ["mcp/message"]
    assert len(errors) == 1


async def test_sends_from_a_thread_keep_their_order_around_blocking_calls(serve, everything):
    @acp_agent
    def agent(turn: SyncPromptContext):
        for number in range(200):
            turn.send_message(f"{number},")
            if number % 50 == 0:
                turn.ext_request("_thing")
        assert threading.current_thread() is not threading.main_thread()

    async with serve(agent) as client:
        client.answers.update(ANSWERS)
        await client.ask()
        assert client.text == "".join(f"{number}," for number in range(200))
        positions = [place for place, frame in enumerate(client.log) if frame.get("method") == "_thing"]
        assert len(positions) == 4


async def test_a_blocking_context_on_the_loop_says_so_instead_of_hanging(serve):
    @acp_agent
    async def agent(turn: PromptContext):
        with pytest.raises(RuntimeError, match="would stop the event loop"):
            SyncPromptContext(turn).ask_permission("Do it")

    async with serve(agent) as client:
        assert "result" in await client.ask()
