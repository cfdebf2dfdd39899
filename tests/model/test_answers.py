"""What a prompt handler returns or yields is sent as it comes; the answer is behind all of it."""

import asyncio
import threading
from collections.abc import AsyncIterator, Awaitable, Iterator
from typing import Any

import anyio
import pytest
from acp.schema import NewSessionResponse, PromptResponse

from acp_integration import PromptContext, SyncPromptContext, acp_agent, on
from acp_integration.types import Image, Text, ToolCall, Update

pytestmark = pytest.mark.sdk


async def returns_text(turn: PromptContext) -> str:
    return "hi"


async def returns_nothing(turn: PromptContext) -> None: ...


async def returns_empty(turn: PromptContext) -> str:
    return ""


async def returns_content(turn: PromptContext) -> Text:
    return Text("hi")


async def returns_mapping(turn: PromptContext) -> dict[str, Any]:
    await turn.send_message("hi")
    return {"stopReason": "max_tokens", "_meta": {"a": 1}}


async def returns_model(turn: PromptContext) -> Any:
    return PromptResponse(stop_reason="refusal")


def returns_awaitable(turn: PromptContext) -> Awaitable[str]:
    async def later():
        return "hi"

    return later()


def sync_returns(turn: SyncPromptContext) -> str:
    return "hi"


async def yields_text(turn: PromptContext) -> AsyncIterator[str]:
    yield "h"
    yield "i"


def sync_yields(turn: SyncPromptContext) -> Iterator[str]:
    yield "h"
    turn.send_message("i")


async def yields_content(turn: PromptContext) -> AsyncIterator[Any]:
    yield Text("hi")
    yield {"sessionUpdate": "agent_thought_chunk", "content": {"type": "text", "text": "hm"}}
    yield Update({"sessionUpdate": "plan", "entries": []})


async def yields_a_result(turn: PromptContext) -> AsyncIterator[Any]:
    yield "hi"
    yield {"stopReason": "max_turn_requests"}
    yield "never"


def sync_yields_and_returns(turn: SyncPromptContext) -> Iterator[str]:
    yield "hi"
    return {"stopReason": "max_tokens"}


END = {"stopReason": "end_turn"}
CASES = [
    (returns_text, "hi", END),
    (returns_nothing, "", END),
    (returns_empty, "", END),
    (returns_content, "hi", END),
    (returns_mapping, "hi", {"stopReason": "max_tokens", "_meta": {"a": 1}}),
    (returns_model, "", {"stopReason": "refusal"}),
    (returns_awaitable, "hi", END),
    (sync_returns, "hi", END),
    (yields_text, "hi", END),
    (sync_yields, "hi", END),
    (yields_content, "hi", END),
    (yields_a_result, "hi", {"stopReason": "max_turn_requests"}),
    (sync_yields_and_returns, "hi", {"stopReason": "max_tokens"}),
]


@pytest.mark.parametrize(("function", "text", "result"), CASES, ids=[case[0].__name__ for case in CASES])
async def test_an_answer(serve, function, text, result):
    async with serve(acp_agent(function)) as client:
        answer = await client.ask()
        assert answer["result"] == result
        assert client.text == text
        assert client.log[-1] is answer


async def test_a_tool_call_is_announced_once_and_then_updated(serve):
    @acp_agent
    async def agent(turn: PromptContext):
        yield ToolCall(id="1", title="Do it", status="pending")
        yield ToolCall(id="1", status="completed")

    async with serve(agent) as client:
        await client.ask()
    assert [update["sessionUpdate"] for update in client.updates()] == ["tool_call", "tool_call_update"]


@pytest.mark.parametrize(
    "value", [7, ["a"], {"stopReason": "nonsense"}, object()], ids=["int", "list", "bad", "object"]
)
async def test_what_is_no_answer_is_an_internal_error(serve, value):
    @acp_agent
    async def agent(turn: PromptContext):
        return value

    async with serve(agent) as client:
        assert (await client.ask())["error"]["code"] == -32603
        assert (await client.answer(client.start_prompt(await client.new_session())))["error"]["code"] == -32603


async def test_another_methods_response_is_refused_naming_both(serve):
    @acp_agent
    async def agent(turn: PromptContext):
        return NewSessionResponse(session_id="x")

    async with serve(agent) as client:
        message = (await client.ask())["error"]["message"]
    assert "NewSessionResponse" in message
    assert "PromptResponse" in message


async def test_a_request_without_a_result_is_an_internal_error(serve):
    @acp_agent
    class Agent:
        @on.prompt
        async def answer(self, turn: PromptContext): ...
        @on.list_sessions
        async def listed(self): ...
        @on.ext_request("_x")
        async def extension(self): ...
        @on.logout
        async def logout(self): ...

    async with serve(Agent) as client:
        await client.initialize()
        for method in ("session/list", "_x"):
            error = await client.error(method)
            assert error["code"] == -32603
            assert error["message"].startswith(f"The {method} handler produced no response (it returned nothing")
        assert await client.call("logout") == {}


async def test_a_generator_is_closed_at_its_yield_when_the_turn_is_cancelled(serve):
    closed = anyio.Event()

    @acp_agent
    async def agent(turn: PromptContext):
        try:
            while True:
                yield "x"
        finally:
            await turn.send_message("bye")
            closed.set()

    async with serve(agent) as client:
        await client.initialize()
        session = await client.new_session()
        prompt = client.start_prompt(session)
        await client.seen(lambda frame: frame.get("method") == "session/update")
        client.notify("session/cancel", sessionId=session)
        assert (await client.answer(prompt))["result"]["stopReason"] == "cancelled"
        assert closed.is_set()
        assert client.text.endswith("bye")


async def test_a_sync_generator_runs_on_one_thread_and_is_closed_there(serve):
    threads = set()

    @acp_agent
    def agent(turn: SyncPromptContext):
        try:
            while True:
                threads.add(threading.get_ident())
                yield "x"
        finally:
            threads.add(threading.get_ident())

    async with serve(agent) as client:
        await client.initialize()
        session = await client.new_session()
        prompt = client.start_prompt(session)
        await client.seen(lambda frame: frame.get("method") == "session/update")
        client.notify("session/cancel", sessionId=session)
        assert (await client.answer(prompt))["result"]["stopReason"] == "cancelled"
    assert len(threads) == 1
    assert threads != {threading.get_ident()}


async def test_a_generator_that_never_awaits_starves_nobody(serve):
    @acp_agent
    async def agent(turn: PromptContext):
        if turn.text == "flood":
            for _ in range(100_000):
                if turn.is_cancelled:
                    return
                yield "x"

    async with serve(agent) as client:
        await client.initialize()
        flooded, other = await client.new_session(), await client.new_session()
        flood = client.start_prompt(flooded, "flood")
        await client.seen(lambda frame: frame.get("method") == "session/update")
        assert await client.prompt(other) == {"stopReason": "end_turn"}
        assert not [frame for frame in client.log if frame.get("id") == flood]
        client.notify("session/cancel", sessionId=flooded)
        assert (await client.answer(flood))["result"]["stopReason"] == "cancelled"


async def test_an_image_is_sent_as_it_is(serve):
    @acp_agent
    async def agent(turn: PromptContext):
        yield Image(b"\x89PNG", "image/png")

    async with serve(agent) as client:
        await client.ask()
    content = client.updates()[0]["content"]
    assert content == {"type": "image", "data": "iVBORw==", "mimeType": "image/png"}


async def test_one_object_serves_all_connections_at_once(serve, build, connect_to):
    both = asyncio.Barrier(2)

    @acp_agent
    class Agent:
        made = 0

        def __init__(self):
            Agent.made += 1

        @on.prompt
        async def answer(self, turn: PromptContext) -> str:
            await both.wait()
            return turn.session.cwd

    factory = build(Agent)
    async with connect_to(factory) as one, connect_to(factory) as two:
        for client in (one, two):
            await client.initialize()
        first = one.start_prompt(await one.new_session("/one"))
        second = two.start_prompt(await two.new_session("/two"))
        await one.answer(first)
        await two.answer(second)
        assert (one.text, two.text) == ("/one", "/two")
    assert Agent.made == 1
