"""Prompts: whole, streamed, started; their updates, their cancel, their end."""

import anyio
import pytest

from acp_integration.errors import AgentTimeout, ConnectionClosed, PeerError, RequestError, TurnCancelled
from acp_integration.testing import NEVER
from acp_integration.types import Update


def saying(agent, *texts, stop_reason="end_turn"):
    """An answer to prompts that says something first."""

    def answer(params):
        for text in texts:
            agent.say(params["sessionId"], text)
        return {"stopReason": stop_reason}

    return answer


def answer_frame(identifier, stop_reason="end_turn"):
    return b'{"jsonrpc":"2.0","id":%d,"result":{"stopReason":"%b"}}' % (identifier, stop_reason.encode())


async def test_a_result_has_the_text_every_update_and_the_stop_reason(agent, client):
    def answer(params):
        agent.update(params["sessionId"], sessionUpdate="agent_thought_chunk", content={"type": "text", "text": "hm"})
        agent.say(params["sessionId"], "Hel")
        agent.update(params["sessionId"], sessionUpdate="tool_call", toolCallId="1", title="Look")
        agent.say(params["sessionId"], "lo")
        return {"stopReason": "max_tokens", "usage": {"totalTokens": 3}, "_meta": {"k": "v"}}

    agent.answer("session/prompt", answer)
    result = await (await client.new_session("/")).prompt("hi")
    assert result.text == "Hello"
    assert [update.kind for update in result.updates] == [
        "agent_thought_chunk",
        "agent_message_chunk",
        "tool_call",
        "agent_message_chunk",
    ]
    assert (result.stop_reason, result.usage, result.meta) == ("max_tokens", {"totalTokens": 3}, {"k": "v"})


async def test_every_update_was_handled_when_prompt_returns_and_they_were_handled_in_order(agent, opened):
    handled = []

    async def handle(update):
        await anyio.sleep(0.02 if update.text == "0" else 0)
        handled.append(update.text)

    agent.answer("session/prompt", saying(agent, "0", "1", "2", "3", "4"))
    client = await opened(lambda builder: builder.on_update(handle))
    await (await client.new_session("/")).prompt("count")
    assert handled == ["0", "1", "2", "3", "4"]


async def test_a_stop_reason_that_nobody_knows_is_kept(agent, client):
    agent.answer("session/prompt", {"stopReason": "out_of_coffee"})
    assert (await (await client.new_session("/")).prompt("hi")).stop_reason == "out_of_coffee"


async def test_unknown_updates_are_kept_as_they_came(agent, client):
    def answer(params):
        agent.update(params["sessionId"], sessionUpdate="hologram", depth=3)
        return {"stopReason": "end_turn"}

    agent.answer("session/prompt", answer)
    [update] = (await (await client.new_session("/")).prompt("hi")).updates
    assert (update.kind, update.text, update.raw["depth"]) == ("hologram", "", 3)


async def test_updates_belong_to_the_turn_of_their_own_session(agent, client):
    agent.answer("session/prompt", NEVER)
    one, two = await client.new_session("/"), await client.new_session("/")
    first, second = await one.start("a"), await two.start("b")
    agent.say(two.id, "for two")
    agent.say(one.id, "for one")
    for handle in (second, first):
        agent.own_end.write(answer_frame(handle.request_id))
    assert (await first.result()).text == "for one"
    assert (await second.result()).text == "for two"


async def test_of_two_turns_in_one_session_each_gets_what_came_before_its_answer(agent, client):
    agent.answer("session/prompt", NEVER)
    session = await client.new_session("/")
    first, second = await session.start("a"), await session.start("b")
    agent.say(session.id, "one")
    agent.own_end.write(answer_frame(first.request_id))
    agent.say(session.id, "two")
    agent.own_end.write(answer_frame(second.request_id))
    assert ((await first.result()).text, (await second.result()).text) == ("one", "two")


async def test_updates_outside_a_turn_reach_the_handlers(agent, opened):
    handled = []
    client = await opened(lambda builder: builder.on_update(handled.append))
    agent.say("some-session", "hello")
    await client.new_session("/")
    assert handled == [
        Update({"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": "hello"}}, "some-session")
    ]


async def test_updates_before_the_answer_to_new_session_are_handled_before_it(agent, opened):
    handled = []

    def answer(_params):
        agent.say("s", "early")
        return {"sessionId": "s"}

    agent.answer("session/new", answer)
    client = await opened(lambda builder: builder.on_update(lambda update: handled.append(update.text)))
    await client.new_session("/")
    assert handled == ["early"]


# -- stream ------------------------------------------------------------------------------------------------------------


async def test_a_stream_gives_the_updates_and_ends_with_the_result(agent, client):
    agent.answer("session/prompt", saying(agent, "a", "b"))
    stream = (await client.new_session("/")).stream("hi")
    items = [item async for item in stream]
    assert [item.kind for item in items] == ["agent_message_chunk", "agent_message_chunk", "result"]
    assert items[-1] is stream.result
    assert items[-1].text == "ab"


async def test_a_stream_gives_each_update_before_the_turn_has_ended(agent, client, bound):
    agent.answer("session/prompt", NEVER)
    session = await client.new_session("/")
    stream = session.stream("hi")
    with bound():
        async with anyio.create_task_group() as tasks:

            async def play():
                [sent] = await agent.wait_for("session/prompt")
                agent.say(session.id, "early")
                await seen.wait()
                agent.own_end.write(answer_frame(sent.id))

            seen = anyio.Event()
            tasks.start_soon(play)
            assert (await anext(stream)).text == "early"
            seen.set()
            assert (await anext(stream)).kind == "result"
            with pytest.raises(StopAsyncIteration):
                await anext(stream)


async def test_nothing_is_sent_before_a_stream_is_read(agent, client):
    session = await client.new_session("/")
    session.stream("hi")
    await client.ext_request("_ping")
    assert "session/prompt" not in [message.method for message in agent.received]


async def test_a_stream_raises_what_a_prompt_raises(agent, client):
    def fail(_params):
        raise RequestError(-32603, "Broken")

    agent.answer("session/prompt", fail)
    stream = (await client.new_session("/")).stream("hi")
    with pytest.raises(PeerError, match="Broken"):
        await anext(stream)


@pytest.mark.parametrize("way", ["break", "async with", "cancel"])
async def test_a_stream_that_is_left_early_cancels_its_turn(agent, client, bound, way):
    agent.answer("session/prompt", NEVER)
    session = await client.new_session("/")

    async def leave():
        if way == "async with":
            async with session.stream("hi") as stream:
                await anext(stream)
            return
        async for _ in session.stream("hi"):
            if way == "break":
                break

    with bound():
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(leave)
            await agent.wait_for("session/prompt")
            agent.say(session.id, "x")
            if way == "cancel":
                await anyio.wait_all_tasks_blocked()
                tasks.cancel_scope.cancel()
        await agent.wait_for("session/cancel")
        await agent.wait_for("$/cancel_request")


async def test_a_slow_reader_of_a_stream_makes_the_agent_wait(agent, client, bound):
    agent.answer("session/prompt", NEVER)
    session = await client.new_session("/")
    count = 5000
    with bound(20):
        async with anyio.create_task_group() as tasks:
            sent = []

            async def play():
                [prompt] = await agent.wait_for("session/prompt")
                for number in range(count):
                    agent.say(session.id, str(number))
                    sent.append(number)
                    if agent.own_end.congested:
                        congested.set()
                        await agent.own_end.drain()
                agent.own_end.write(answer_frame(prompt.id))

            congested = anyio.Event()
            tasks.start_soon(play)
            texts = []
            async for item in session.stream("hi"):
                if not texts:
                    await congested.wait()
                    await anyio.wait_all_tasks_blocked()
                    assert len(sent) < count
                texts.append(item.text)
    assert texts[:-1] == [str(number) for number in range(count)]


async def test_a_reader_of_a_stream_can_call_the_agent_meanwhile(agent, client, bound):
    agent.answer("session/prompt", saying(agent, *map(str, range(3000))))
    session = await client.new_session("/")
    with bound(20):
        async for item in session.stream("hi"):
            if item.text == "0":
                await client.ext_request("_ping")


# -- start -------------------------------------------------------------------------------------------------------------


async def test_a_handle_knows_its_request_and_the_updates_so_far(agent, client, bound):
    agent.answer("session/prompt", NEVER)
    session = await client.new_session("/")
    handle = await session.start("hi")
    [sent] = await agent.wait_for("session/prompt")
    assert handle.request_id == sent.id
    assert not handle.done
    agent.say(session.id, "so far")
    await client.ext_request("_ping")
    assert [update.text for update in handle.updates] == ["so far"]
    agent.own_end.write(answer_frame(sent.id))
    with bound():
        assert (await handle.result()) is (await handle.result())
    assert handle.done


async def test_a_handles_cancel_stops_its_own_turn_only_and_still_gives_what_the_agent_answers(agent, client, bound):
    agent.answer("session/prompt", NEVER)
    one, two = await client.new_session("/"), await client.new_session("/")
    first, second = await one.start("a"), await two.start("b")
    await first.cancel()
    await first.cancel()
    with bound():
        [withdrawn] = await agent.wait_for("$/cancel_request")
        [cancelled] = await agent.wait_for("session/cancel")
        agent.own_end.write(answer_frame(first.request_id, "cancelled"))
        assert (await first.result()).stop_reason == "cancelled"
        assert withdrawn.params == {"requestId": first.request_id}
        assert cancelled.params == {"sessionId": one.id}
        assert not second.done
        agent.own_end.write(answer_frame(second.request_id))
        assert (await second.result()).stop_reason == "end_turn"
        await client.ext_request("_ping")
    assert len([message for message in agent.received if message.method == "$/cancel_request"]) == 1


async def test_cancelling_one_of_two_turns_of_a_session_does_not_cancel_the_session(agent, client):
    agent.answer("session/prompt", NEVER)
    session = await client.new_session("/")
    first = await session.start("a")
    await session.start("b")
    await first.cancel()
    await client.ext_request("_ping")
    sent = [message.method for message in agent.received]
    assert "$/cancel_request" in sent
    assert "session/cancel" not in sent


async def test_leaving_a_wait_for_a_result_leaves_the_turn_running(agent, client, bound):
    agent.answer("session/prompt", NEVER)
    handle = await (await client.new_session("/")).start("hi")
    with anyio.move_on_after(0.01):
        await handle.result()
    assert not handle.done
    agent.own_end.write(answer_frame(handle.request_id))
    with bound():
        await handle.result()


# -- the end -----------------------------------------------------------------------------------------------------------


async def test_a_cancelled_prompt_cancels_its_turn_once(agent, client, bound):
    agent.answer("session/prompt", NEVER)
    session = await client.new_session("/")
    with bound():
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(session.prompt, "hi")
            await agent.wait_for("session/prompt")
            tasks.cancel_scope.cancel()
        await agent.wait_for("$/cancel_request")
        await agent.wait_for("session/cancel")
        await client.ext_request("_ping")
    assert len([message for message in agent.received if message.method == "$/cancel_request"]) == 1


async def test_a_prompt_is_unbounded_unless_there_is_a_prompt_timeout(agent, opened, make_settings, bound):
    agent.answer("session/prompt", NEVER)
    client = await opened(settings=make_settings(request_timeout=0.01, prompt_timeout=0.05))
    session = client.session("s")
    with bound(), pytest.raises(AgentTimeout) as failure:
        await session.prompt("hi")
    assert (failure.value.method, failure.value.seconds) == ("session/prompt", 0.05)
    with bound():
        await agent.wait_for("$/cancel_request")


async def test_the_request_timeout_does_not_end_a_prompt(agent, opened, make_settings):
    client = await opened(settings=make_settings(request_timeout=0.01))

    async def later(_params):
        await anyio.sleep(0.05)
        return {"stopReason": "end_turn"}

    agent.answer("session/prompt", later)
    assert (await client.session("s").prompt("hi")).stop_reason == "end_turn"


async def test_the_end_of_the_agent_fails_every_prompt_at_once(agent, client, bound):
    agent.answer("session/prompt", NEVER)
    session = await client.new_session("/")
    handles = [await session.start("a"), await session.start("b")]
    await agent.hang_up()
    for handle in handles:
        with bound(), pytest.raises(ConnectionClosed, match="The agent closed the connection"):
            await handle.result()
    with pytest.raises(ConnectionClosed):
        await session.prompt("too late")


async def test_an_answer_that_came_before_the_end_still_waits_for_its_updates(agent, opened, bound):
    handled = []

    async def handle(update):
        await anyio.sleep(0.01)
        handled.append(update.text)

    async def answer(params):
        agent.say(params["sessionId"], "a")
        agent.say(params["sessionId"], "b")
        agent.own_end.write(answer_frame(handle_ids[-1]))
        await agent.hang_up()

    handle_ids = []
    client = await opened(lambda builder: builder.on_update(handle))
    agent.answer("session/prompt", NEVER)
    prompt = await client.session("s").start("hi")
    handle_ids.append(prompt.request_id)
    await answer({"sessionId": "s"})
    with bound():
        assert (await prompt.result()).text == "ab"
    assert handled == ["a", "b"]


async def test_an_abandoned_handle_says_that_its_turn_was_cancelled(agent, client):
    agent.answer("session/prompt", NEVER)
    handle = await client.session("s").start("hi")
    handle.abandon()
    with pytest.raises(TurnCancelled):
        await handle.result()
