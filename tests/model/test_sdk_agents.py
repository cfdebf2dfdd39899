"""A class written for the official SDK is served unchanged: one instance for each connection."""

import asyncio
from typing import Any
from uuid import uuid4

import pytest
from acp import Agent, RequestError
from acp.schema import (
    AgentCapabilities,
    AgentMessageChunk,
    AuthMethodAgent,
    Implementation,
    InitializeResponse,
    NewSessionResponse,
    PermissionOption,
    PromptResponse,
    SessionCapabilities,
    SessionListCapabilities,
    TextContentBlock,
    ToolCallUpdate,
)

from acp_integration import acp_agent
from acp_integration.assembly import AgentBuilder
from acp_integration.caller import LOCAL
from acp_integration.discovery import candidate_of
from acp_integration.errors import HandlerError, TurnCancelled
from acp_integration.transports.memory import memory_transport_pair

pytestmark = pytest.mark.sdk


@acp_agent
class EchoAgent(Agent):
    """As in the SDK's own example."""

    _conn: Any

    def on_connect(self, conn):
        self._conn = conn

    async def initialize(self, protocol_version, client_capabilities=None, client_info=None, **kwargs):
        return InitializeResponse(protocol_version=protocol_version)

    async def new_session(self, cwd, additional_directories=None, mcp_servers=None, **kwargs):
        return NewSessionResponse(session_id=uuid4().hex)

    async def prompt(self, session_id, prompt, **kwargs):
        for block in prompt:
            text = block.text if hasattr(block, "text") else ""
            content = TextContentBlock(type="text", text=text)
            chunk = AgentMessageChunk(session_update="agent_message_chunk", content=content)
            await self._conn.session_update(session_id=session_id, update=chunk, source="echo_agent")
        return PromptResponse(stop_reason="end_turn")


@acp_agent
class RichAgent:
    """Not a subclass of anything; needs no base to be recognised."""

    def __init__(self):
        self.cancelled = asyncio.Event()
        self.seen: list[Any] = []
        self.sessions: set[str] = set()

    def on_connect(self, conn):
        self.conn = conn

    async def initialize(self, protocol_version, **kwargs):
        return InitializeResponse(
            protocol_version=1,
            agent_info=Implementation(name="rich", version="3"),
            auth_methods=[AuthMethodAgent(id="a", name="A")],
            agent_capabilities=AgentCapabilities(
                load_session=True, session_capabilities=SessionCapabilities(list=SessionListCapabilities())
            ),
        )

    async def new_session(self, cwd, mcp_servers=None, **kwargs):
        self.seen.append((cwd, kwargs))
        session = f"s{len(self.sessions)}"
        self.sessions.add(session)
        return NewSessionResponse(session_id=session)

    async def list_sessions(self, cursor=None, cwd=None, **kwargs):
        return {"sessions": [{"sessionId": session, "cwd": "/x"} for session in sorted(self.sessions)]}

    async def cancel(self, session_id, **kwargs):
        self.cancelled.set()

    async def ext_method(self, method, params):
        if method == "gone":
            raise RequestError.resource_not_found("it")
        return {"method": method, **params}

    async def ext_notification(self, method, params):
        self.seen.append((method, params))

    async def prompt(self, prompt, session_id, **kwargs):
        await self.say(session_id, "begun")
        match prompt[0].text:
            case "permission":
                call = ToolCallUpdate(tool_call_id="c")
                options = [PermissionOption(option_id="y", name="Yes", kind="allow_once")]
                answer = await self.conn.request_permission(session_id=session_id, tool_call=call, options=options)
                await self.say(session_id, answer.outcome.outcome)
            case "cancel":
                await self.cancelled.wait()
                return PromptResponse(stop_reason="cancelled")
            case "read":
                try:
                    answer = await self.conn.read_text_file(session_id=session_id, path="/a")
                except RequestError as error:
                    await self.say(session_id, f"error {error.code}")
                except TurnCancelled:
                    await self.say(session_id, "turn cancelled")
                    raise
                else:
                    await self.say(session_id, answer.content)
            case "ext":
                await self.say(session_id, str(await self.conn.ext_method("do", {"a": 1})))
            case "terminal":
                terminal = await self.conn.create_terminal(session_id=session_id, command="ls")
                ended = await self.conn.wait_for_terminal_exit(session_id=session_id, terminal_id=terminal.terminal_id)
                await self.conn.release_terminal(session_id=session_id, terminal_id=terminal.terminal_id)
                await self.say(session_id, str(ended.exit_code))
        return PromptResponse(stop_reason="end_turn")

    async def say(self, session_id, text):
        content = TextContentBlock(type="text", text=text)
        update = AgentMessageChunk(session_update="agent_message_chunk", content=content)
        await self.conn.session_update(session_id, update)


async def test_the_sdks_example_is_served(serve):
    async with serve(EchoAgent) as client:
        assert (await client.ask("hi"))["result"] == {"stopReason": "end_turn"}
        assert client.text == "hi"
    assert client.log[2]["params"]["_meta"] == {"source": "echo_agent"}


async def test_what_a_class_does_not_define_is_not_advertised_and_not_found(serve):
    async with serve(EchoAgent) as client:
        capabilities = (await client.initialize())["agentCapabilities"]
        assert not capabilities["loadSession"]
        assert not capabilities.get("sessionCapabilities")
        for method in ("session/load", "session/list", "session/set_mode", "authenticate", "_thing"):
            assert (await client.error(method))["code"] == -32601
    async with serve(RichAgent) as client:
        answer = await client.initialize()
        assert answer["agentInfo"] == {"name": "rich", "version": "3"}
        assert not answer["agentCapabilities"]["loadSession"]
        assert answer["agentCapabilities"]["sessionCapabilities"] == {"list": {}}


async def test_a_class_asks_for_authentication_itself(serve):
    async with serve(RichAgent) as client:
        await client.initialize()
        assert await client.new_session() == "s0"


async def test_two_connections_with_interleaved_turns_never_see_each_others_updates(build, connect_to):
    factory = build(RichAgent)
    async with connect_to(factory) as one, connect_to(factory) as two:
        for client in (one, two):
            await client.initialize()
            assert await client.new_session() == "s0"
        first, second = one.start_prompt("s0", "permission"), two.start_prompt("s0", "permission")
        for client, option in ((one, "y"), (two, None)):
            asked = await client.asked("session/request_permission")
            outcome = {"outcome": "selected", "optionId": option} if option else {"outcome": "cancelled"}
            client.write(id=asked["id"], result={"outcome": outcome})
        await one.answer(first)
        await two.answer(second)
        assert (one.text, two.text) == ("begunselected", "beguncancelled")


async def test_meta_reaches_only_the_keyword_arguments(serve, build):
    made = []

    @acp_agent
    class Strict(RichAgent):
        def __init__(self):
            super().__init__()
            made.append(self)

    async with serve(Strict) as client:
        await client.initialize()
        await client.call("session/new", cwd="/right", mcpServers=[], _meta={"cwd": "/wrong", "mcp_servers": 1, "x": 2})
    assert made[0].seen == [("/right", {"x": 2})]


async def test_a_cancel_is_told_and_its_turns_are_cooperative(serve):
    async with serve(RichAgent) as client:
        await client.initialize()
        session = await client.new_session()
        prompt = client.start_prompt(session, "cancel")
        await client.seen(lambda frame: frame.get("method") == "session/update")
        client.notify("session/cancel", sessionId=session)
        assert (await client.answer(prompt))["result"] == {"stopReason": "cancelled"}


@pytest.mark.parametrize(
    ("action", "said"), [("permission", "beguncancelled"), ("read", "begunturn cancelled")], ids=["person", "machine"]
)
async def test_a_cancel_ends_what_a_turn_asks_of_the_client(serve, everything, action, said):
    async with serve(RichAgent) as client:
        await client.initialize(**everything)
        session = await client.new_session()
        prompt = client.start_prompt(session, action)
        await client.seen(lambda frame: "id" in frame and "method" in frame)
        client.notify("session/cancel", sessionId=session)
        assert (await client.answer(prompt))["result"] == {"stopReason": "cancelled"}
        assert client.text == said
        assert [frame for frame in client.log if frame.get("method") == "$/cancel_request"]


async def test_the_client_is_asked_as_the_sdk_asks(serve, everything):
    async with serve(RichAgent) as client:
        client.answers.update(
            {
                "fs/read_text_file": {"content": "file"},
                "_do": {"done": True},
                "terminal/create": {"terminalId": "t"},
                "terminal/wait_for_exit": {"exitCode": 3},
                "terminal/release": {},
            }
        )
        await client.initialize(**everything)
        session = await client.new_session()
        for action in ("read", "ext", "terminal"):
            await client.prompt(session, action)
        assert client.text == "begunfilebegun{'done': True}begun3"
        assert client.requests.count("terminal/release") == 1


async def test_what_the_client_did_not_announce_is_refused_as_it_would_refuse_it(serve):
    async with serve(RichAgent) as client:
        await client.ask("read")
        assert client.text == "begunerror -32601"
        assert client.requests == []


async def test_a_peers_error_is_the_sdks_error(serve, everything):
    async with serve(RichAgent) as client:
        client.answers["fs/read_text_file"] = RuntimeError("broken")
        await client.ask("read", **everything)
        assert client.text == "begunerror -32603"


async def test_extensions_lose_their_underscore(serve):
    async with serve(RichAgent) as client:
        await client.initialize()
        assert await client.call("_work", a=1) == {"method": "work", "a": 1}
        assert (await client.error("_gone"))["code"] == -32002
        client.notify("_note", b=2)
        assert await client.call("_after") == {"method": "after"}


def test_an_instance_keeps_one_connection_and_none_over_the_network():
    factory = AgentBuilder(RichAgent()).build_factory()
    _, transport = memory_transport_pair()
    factory(transport, LOCAL)
    _, networked = memory_transport_pair()
    networked.kind = "websocket"
    with pytest.raises(HandlerError, match="serve the class, not an instance"):
        factory(networked, LOCAL)


def test_a_candidate_of_the_class_has_an_instance_for_each_connection(build):
    factory = build(candidate_of(RichAgent))
    _, transport = memory_transport_pair()
    transport.kind = "http"
    factory(transport, LOCAL)


def test_a_constructor_with_arguments_is_reported_at_the_build(build):
    @acp_agent
    class NeedsArguments(EchoAgent):
        def __init__(self, database):
            pass

    with pytest.raises(HandlerError, match="cannot be made without arguments"):
        build(NeedsArguments)
