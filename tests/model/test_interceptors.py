"""Interceptors stand around every call: before, after, on an error, at the end."""

from typing import Any

import pytest
from acp.schema import NewSessionResponse, PromptResponse

from acp_integration import PromptContext, RequestError, acp_agent, on
from acp_integration.assembly import AgentBuilder
from acp_integration.interception import Interceptor

pytestmark = pytest.mark.sdk


@acp_agent
class Agent:
    @on.prompt
    async def answer(self, turn: PromptContext) -> str:
        calls.append("handler")
        if turn.text == "fail":
            raise ValueError("secret")
        return "answer"

    @on.cancel
    async def cancel(self, session_id: str) -> None:
        calls.append("cancel")

    @on.ext_notification("_note")
    async def note(self, params: dict[str, Any]) -> None:
        calls.append("note")


calls: list[Any] = []


@pytest.fixture(autouse=True)
def no_calls():
    calls.clear()


class Recorder(Interceptor):
    """Records its hooks for prompts, and does what it is given for each."""

    def __init__(self, name, order=0, methods=("session/prompt",), **hooks):
        self.name, self.order, self.methods, self.hooks = name, order, methods, hooks

    def act(self, hook, invocation, value, default):
        if invocation.method not in self.methods:
            return default
        calls.append(f"{self.name}.{hook}" if value is None else (f"{self.name}.{hook}", value))
        action = self.hooks.get(hook)
        if isinstance(action, Exception):
            raise action
        return default if action is None else action

    async def pre_invoke(self, invocation):
        return self.act("pre", invocation, None, True)

    def post_invoke(self, invocation, result):
        return self.act("post", invocation, None, result)

    async def on_error(self, invocation, error):
        return self.act("error", invocation, type(error).__name__, None)

    def after_completion(self, invocation, error):
        self.act("after", invocation, error and type(error).__name__, None)


async def test_hooks_run_in_their_order_and_back(serve):
    interceptors = [Recorder("late", 5), Recorder("first", -1), Recorder("second"), Recorder("third")]
    async with serve(Agent, interceptors=interceptors) as client:
        await client.ask()
        assert client.text == "answer"
    names = ["first", "second", "third", "late"]
    back = names[::-1]
    assert calls == [
        *(f"{n}.pre" for n in names),
        "handler",
        *(f"{n}.post" for n in back),
        *(f"{n}.after" for n in back),
    ]


async def test_a_veto_keeps_the_handler_from_being_called(serve):
    interceptors = [Recorder("outer"), Recorder("veto", pre=False), Recorder("inner")]
    async with serve(Agent, interceptors=interceptors) as client:
        error = (await client.ask())["error"]
    assert error["code"] == -32603
    assert error["message"] == (
        "The session/prompt handler produced no response (it returned nothing, or an interceptor vetoed the call)"
    )
    assert calls == ["outer.pre", "veto.pre", "outer.after"]


async def test_a_veto_with_a_code_of_its_own(serve):
    veto = Recorder("veto", methods=("session/new",), pre=RequestError(-32000, "Authentication required"))
    async with serve(Agent, interceptors=[veto]) as client:
        await client.initialize()
        error = await client.error("session/new", cwd="/x", mcpServers=[])
    assert error == {"code": -32000, "message": "Authentication required"}


async def test_the_agents_own_answers_pass_through_too(serve):
    interceptor = Recorder("all", methods=("initialize", "session/new", "session/cancel", "_note"))
    async with serve(Agent, interceptors=[interceptor]) as client:
        await client.initialize()
        session = await client.new_session()
        client.notify("_note", a=1)
        client.notify("session/cancel", sessionId=session)
        await client.prompt(session)
    assert calls.count("all.pre") == 4
    assert "note" in calls
    assert "cancel" in calls


async def test_a_result_can_be_replaced(serve):
    async with serve(Agent, interceptors=[Recorder("r", post="replaced")]) as client:
        await client.ask()
        assert client.text == "replaced"


async def test_a_failing_post_invoke_keeps_the_result(serve):
    interceptors = [Recorder("outer"), Recorder("broken", post=KeyError("x"))]
    async with serve(Agent, interceptors=interceptors) as client:
        await client.ask()
        assert client.text == "answer"
    assert "outer.post" in calls


async def test_a_replacement_of_another_type_names_both(serve):
    @acp_agent
    async def agent(turn: PromptContext):
        return PromptResponse(stop_reason="end_turn")

    class Swaps(Interceptor):
        def post_invoke(self, invocation, result):
            return NewSessionResponse(session_id="x") if invocation.method == "session/prompt" else result

    async with serve(agent, interceptors=[Swaps()]) as client:
        error = (await client.ask())["error"]
    assert error["code"] == -32603
    assert "NewSessionResponse, not PromptResponse" in error["message"]


async def test_an_error_is_replaced_by_the_first_that_has_an_answer(serve):
    interceptors = [Recorder("outer", error="outer"), Recorder("middle", error="middle"), Recorder("inner")]
    async with serve(Agent, interceptors=interceptors) as client:
        assert "result" in await client.ask("fail")
        assert client.text == "middle"
    assert ("inner.error", "ValueError") in calls
    assert not [call for call in calls if call[0] == "outer.error"]
    assert calls[-3:] == ["inner.after", "middle.after", "outer.after"]


async def test_a_protocol_error_from_on_error_is_the_answer_and_ends_the_walk(serve):
    interceptors = [Recorder("outer", error="never"), Recorder("inner", error=RequestError(-32002, "Gone", {"a": 1}))]
    async with serve(Agent, interceptors=interceptors) as client:
        assert (await client.ask("fail"))["error"] == {"code": -32002, "message": "Gone", "data": {"a": 1}}
    assert not [call for call in calls if call[0] == "outer.error"]
    assert calls[-2:] == [("inner.after", "RequestError"), ("outer.after", "RequestError")]


async def test_another_exception_from_on_error_is_an_internal_error_with_the_first_attached(serve, caplog):
    async with serve(Agent, interceptors=[Recorder("broken", error=KeyError("oops"))]) as client:
        error = (await client.ask("fail"))["error"]
    assert error["code"] == -32603
    assert "secret" not in str(error)
    assert "secret" in caplog.text
    assert calls[-1] == ("broken.after", "KeyError")


async def test_the_hooks_after_a_failed_pre_invoke_are_for_those_that_passed(serve):
    interceptors = [Recorder("outer"), Recorder("broken", pre=ValueError("x")), Recorder("inner")]
    async with serve(Agent, interceptors=interceptors) as client:
        assert (await client.ask())["error"]["code"] == -32603
    assert calls == ["outer.pre", "broken.pre", ("outer.error", "ValueError"), ("outer.after", "ValueError")]


async def test_after_completion_gets_the_failure(serve):
    async with serve(Agent, interceptors=[Recorder("r")]) as client:
        await client.ask("fail")
    assert calls[-1] == ("r.after", "ValueError")


async def test_a_failing_after_completion_changes_nothing(serve):
    async with serve(Agent, interceptors=[Recorder("broken", after=ValueError("x"))]) as client:
        assert "result" in await client.ask()


async def test_an_interceptor_sees_the_call(serve):
    seen = []

    class Looks(Interceptor):
        def pre_invoke(self, invocation):
            invocation.attributes["mine"] = 1
            return True

        def after_completion(self, invocation, error):
            if invocation.turn is not None:
                seen.append((invocation.handler, invocation.session_id, invocation.turn.text, invocation.attributes))

    async with serve(Agent, interceptors=[Looks()]) as client:
        await client.initialize()
        session = await client.new_session()
        await client.prompt(session)
    ((handler, session_id, text, attributes),) = seen
    assert handler.endswith("Agent.answer")
    assert (session_id, text, attributes) == (session, "hello", {"mine": 1})


async def test_what_is_added_to_a_builder_later_is_not_in_what_was_built(connect_to):
    builder = AgentBuilder(Agent)
    before = builder.build_factory()
    builder.interceptors.append(Recorder("later"))
    after = builder.build_factory()
    async with connect_to(before) as client:
        await client.ask()
    assert calls == ["handler"]
    async with connect_to(after) as client:
        await client.ask()
    assert calls.count("later.pre") == 1
