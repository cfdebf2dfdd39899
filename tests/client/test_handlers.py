"""What a client does with what its agent asks: answers once, in order, and stops asking when the turn is cancelled."""

import logging
import threading

import anyio
import pytest

from acp_integration.client import SyncAcpClient
from acp_integration.errors import PeerError, RequestError
from acp_integration.testing import NEVER

OPTIONS = [
    {"optionId": "yes", "name": "Yes", "kind": "allow_once"},
    {"optionId": "no", "name": "No", "kind": "reject_once"},
]


def permission(session="s"):
    return {"sessionId": session, "toolCall": {"toolCallId": "1", "title": "Delete"}, "options": OPTIONS}


def form(**scope):
    return {"mode": "form", "message": "Who?", "requestedSchema": {"type": "object", "properties": {}}, **scope}


CANCELLED = {"outcome": {"outcome": "cancelled"}}


async def never(_request):
    await anyio.sleep_forever()


# -- answers -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("returned", "answered"),
    [
        ("yes", {"outcome": {"outcome": "selected", "optionId": "yes"}}),
        (None, CANCELLED),
        ({"outcome": {"outcome": "cancelled"}}, CANCELLED),
    ],
)
async def test_a_permission_handler_returns_an_option_or_none(agent, opened, returned, answered):
    async def decide(request):
        assert [option.kind for option in request.options] == ["allow_once", "reject_once"]
        return returned

    await opened(lambda builder: builder.on_permission(decide))
    assert await agent.request("session/request_permission", permission()) == answered


async def test_an_option_that_was_not_offered_is_an_error(agent, opened):
    await opened(lambda builder: builder.on_permission(lambda _: "maybe"))
    with pytest.raises(PeerError) as failure:
        await agent.request("session/request_permission", permission())
    assert failure.value.code == -32603
    assert failure.value.data["reason"] == "unoffered-option"


async def test_without_a_permission_handler_nothing_is_allowed_and_the_caller_sees_it(agent, client, caplog):
    async def answer(params):
        outcomes.append(await agent.request("session/request_permission", permission()))
        return {"stopReason": "end_turn"}

    outcomes = []
    agent.answer("session/prompt", answer)
    result = await client.session("s").prompt("delete it")
    assert outcomes == [{"outcome": {"outcome": "selected", "optionId": "no"}}]
    assert [denied.tool_call.title for denied in result.denials] == ["Delete"]
    assert "no permission handler" in caplog.text


async def test_files_are_read_and_written_by_their_handlers(agent, opened, make_settings):
    written = {}

    def customize(builder):
        builder.on_read_text_file(lambda request: f"{request.path}:{request.line}:{request.limit}")
        builder.on_write_text_file(lambda request: written.update({request.path: request.content}))

    await opened(customize, settings=make_settings("read_text_file", "write_text_file"))
    read = await agent.request("fs/read_text_file", {"sessionId": "s", "path": "/a", "line": 2, "limit": 3})
    assert read == {"content": "/a:2:3"}
    assert await agent.request("fs/write_text_file", {"sessionId": "s", "path": "/b", "content": "x"}) == {}
    assert written == {"/b": "x"}


async def test_a_terminal_is_served_by_five_handlers(agent, opened, make_settings):
    def customize(builder):
        builder.on_create_terminal(lambda request: f"t-{request.command}")
        builder.on_terminal_output(lambda _: {"output": "out", "truncated": False})
        builder.on_wait_for_terminal_exit(lambda _: {"exitCode": 0})
        builder.on_kill_terminal(lambda _: None)
        builder.on_release_terminal(lambda _: None)

    await opened(customize, settings=make_settings("terminal"))
    assert await agent.request("terminal/create", {"sessionId": "s", "command": "ls"}) == {"terminalId": "t-ls"}
    terminal = {"sessionId": "s", "terminalId": "t-ls"}
    assert await agent.request("terminal/output", terminal) == {"output": "out", "truncated": False}
    assert await agent.request("terminal/wait_for_exit", terminal) == {"exitCode": 0}
    assert await agent.request("terminal/kill", terminal) == {}
    assert await agent.request("terminal/release", terminal) == {}


async def test_a_question_is_answered_by_its_handler_and_none_is_cancel(agent, opened, make_settings):
    answers = [{"action": "accept", "content": {"name": "Ada"}}, None]
    await opened(
        lambda builder: builder.on_elicitation(lambda _: answers.pop(0)), settings=make_settings("elicitation_form")
    )
    assert (await agent.request("elicitation/create", form(sessionId="s")))["content"] == {"name": "Ada"}
    assert await agent.request("elicitation/create", form(sessionId="s")) == {"action": "cancel"}


async def test_extensions_reach_their_handlers(agent, opened, bound):
    heard = anyio.Event()

    async def hear(params):
        assert params == {"n": 1}
        heard.set()

    def customize(builder):
        builder.on_ext_request("_add", lambda params: params["a"] + params["b"])
        builder.on_ext_notification("_news", hear)

    await opened(customize)
    assert await agent.request("_add", {"a": 1, "b": 2}) == 3
    agent.notify("_news", {"n": 1})
    with bound():
        await heard.wait()


@pytest.mark.parametrize(
    ("method", "said"),
    [
        ("fs/read_text_file", "File system read not supported"),
        ("terminal/create", "Terminal not supported"),
        ("elicitation/create", "Elicitation not supported"),
        ("_unknown", None),
    ],
)
async def test_what_the_client_does_not_serve_is_not_found_and_names_the_capability(agent, client, method, said):
    with pytest.raises(PeerError) as failure:
        await agent.request(method, {"sessionId": "s"})
    assert (failure.value.code, failure.value.data) == (-32601, said)


async def test_params_that_cannot_be_read_are_refused(agent, opened):
    await opened(lambda builder: builder.on_permission(lambda _: "yes"))
    with pytest.raises(PeerError) as failure:
        await agent.request("session/request_permission", {"sessionId": "s"})
    assert failure.value.code == -32602


async def test_a_handler_chooses_the_error_and_any_other_failure_hides_its_text(agent, opened):
    def choose(_params):
        raise RequestError(-32002, "No such thing", {"x": 1})

    def fail(_params):
        raise ValueError("the secret")

    def customize(builder):
        builder.on_ext_request("_choose", choose)
        builder.on_ext_request("_fail", fail)

    await opened(customize)
    with pytest.raises(PeerError) as chosen:
        await agent.request("_choose", {})
    assert (chosen.value.code, chosen.value.message, chosen.value.data) == (-32002, "No such thing", {"x": 1})
    with pytest.raises(PeerError) as failed:
        await agent.request("_fail", {})
    assert failed.value.code == -32603
    assert "secret" not in str(failed.value) + str(failed.value.data)


async def test_sync_handlers_run_on_a_thread_and_async_ones_on_the_loop(agent, opened):
    async def on_loop(_params):
        return threading.current_thread() is threading.main_thread()

    def customize(builder):
        builder.on_ext_request("_sync", lambda _: threading.current_thread() is threading.main_thread())
        builder.on_ext_request("_async", on_loop)

    await opened(customize)
    assert await agent.request("_sync", {}) is False
    assert await agent.request("_async", {}) is True


# -- updates -----------------------------------------------------------------------------------------------------------


async def test_the_first_update_handler_replaces_the_default_and_more_are_added(agent, opened, caplog):
    caplog.set_level(logging.DEBUG, "acp_integration.client.handlers")
    first, second = [], []

    def customize(builder):
        builder.on_update(first.append)
        builder.on_update(second.append)

    client = await opened(customize)
    agent.say("s", "x")
    await client.ext_request("_ping")
    assert (len(first), len(second)) == (1, 1)
    assert not [record for record in caplog.records if record.name == "acp_integration.client.handlers"]


async def test_the_default_update_handler_logs_at_debug(agent, client, caplog):
    caplog.set_level(logging.DEBUG, "acp_integration.client.handlers")
    agent.say("s", "the content")
    await client.ext_request("_ping")
    [record] = [record for record in caplog.records if record.name == "acp_integration.client.handlers"]
    assert record.levelno == logging.DEBUG
    assert "the content" in record.getMessage()


async def test_a_handler_that_fails_is_logged_and_the_next_update_is_handled(agent, opened, caplog):
    handled = []

    async def handle(update):
        if update.text == "bad":
            raise ValueError("no")
        handled.append(update.text)

    client = await opened(lambda builder: builder.on_update(handle))
    agent.say("s", "bad")
    agent.say("s", "good")
    await client.ext_request("_ping")
    assert handled == ["good"]
    assert "failed" in caplog.text


async def test_an_update_that_cannot_be_read_ends_nothing(agent, client, caplog):
    agent.notify("session/update", {"update": 5})
    await client.ext_request("_ping")
    assert "could not be handled" in caplog.text


async def test_an_update_handler_can_call_the_agent(agent, opened, bound):
    sessions = []
    clients = []

    async def handle(update):
        if not sessions:
            sessions.append(await clients[0].new_session("/"))

    clients.append(await opened(lambda builder: builder.on_update(handle)))
    agent.say("s", "a")
    agent.say("s", "b")
    with bound():
        await clients[0].ext_request("_ping")
    assert len(sessions) == 1


async def test_an_update_handler_on_a_thread_can_call_the_agent_too(agent, opened, bound):
    clients, done = [], []

    def handle(_update):
        done.append(SyncAcpClient(clients[0]).ext_request("_ping"))

    clients.append(await opened(lambda builder: builder.on_update(handle)))
    agent.say("s", "a")
    with bound():
        await clients[0].ext_request("_x")
    assert done == [{}]


async def test_a_permission_is_asked_after_the_updates_before_it_were_handled(agent, opened, bound):
    seen = []

    async def handle(update):
        await anyio.sleep(0.01)
        seen.append(update.raw["toolCallId"])

    async def decide(request):
        assert request.tool_call.tool_call_id in seen
        return "yes"

    def customize(builder):
        builder.on_update(handle)
        builder.on_permission(decide)

    await opened(customize)
    agent.update("s", sessionUpdate="tool_call", toolCallId="1", title="Delete")
    with bound():
        answer = await agent.request("session/request_permission", permission())
    assert answer["outcome"]["optionId"] == "yes"


async def test_a_permission_is_asked_while_the_running_handler_waits_for_the_agent(agent, opened, bound):
    clients = []

    async def handle(_update):
        await clients[0].ext_request("_needs_permission")

    def customize(builder):
        builder.on_update(handle)
        builder.on_permission(lambda _: "yes")

    async def needs_permission(_params):
        return await agent.request("session/request_permission", permission())

    agent.answer("_needs_permission", needs_permission)
    clients.append(await opened(customize))
    agent.say("s", "a")
    agent.say("s", "b")
    with bound():
        await clients[0].ext_request("_ping")


async def test_a_permission_that_waits_blocks_no_other_session(agent, opened, bound):
    client = await opened(lambda builder: builder.on_permission(never))
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(agent.request, "session/request_permission", permission("one"))
        with bound():
            assert (await client.session("two").prompt("hi")).stop_reason == "end_turn"
        tasks.cancel_scope.cancel()


# -- cancel ------------------------------------------------------------------------------------------------------------


class Asked:
    """A handler that waits for ever, and tells when it was called and when it was cancelled."""

    def __init__(self):
        self.calls = 0
        self.called = anyio.Event()
        self.cancelled = 0

    async def __call__(self, _request):
        self.calls += 1
        self.called.set()
        try:
            await anyio.sleep_forever()
        except anyio.get_cancelled_exc_class():
            self.cancelled += 1
            raise


@pytest.fixture
def asked():
    return Asked()


async def test_cancel_answers_the_pending_permission_of_its_session_whatever_the_handler_does(
    agent, opened, asked, bound
):
    client = await opened(lambda builder: builder.on_permission(asked))
    answers = []

    async def ask():
        answers.append(await agent.request("session/request_permission", permission()))

    with bound():
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(ask)
            await asked.called.wait()
            await client.session("s").cancel()
    assert answers == [CANCELLED]
    assert (asked.calls, asked.cancelled) == (1, 1)
    assert [message.method for message in agent.received][-1] == "session/cancel"


@pytest.mark.parametrize("scope", [{"sessionId": "s"}, {"requestId": None}], ids=["of a session", "of a request"])
async def test_cancel_answers_pending_questions_too(agent, opened, make_settings, asked, bound, scope):
    agent.answer("session/prompt", NEVER)
    client = await opened(lambda builder: builder.on_elicitation(asked), settings=make_settings("elicitation_form"))
    session = client.session("s")
    handle = await session.start("hi")
    scope = {key: value or handle.request_id for key, value in scope.items()}
    answers = []

    async def ask():
        answers.append(await agent.request("elicitation/create", form(**scope)))

    with bound():
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(ask)
            await asked.called.wait()
            await session.cancel()
    assert answers == [{"action": "cancel"}]


async def test_cancel_leaves_the_permissions_of_other_sessions(agent, opened, bound):
    let_go = anyio.Event()

    async def decide(_request):
        await let_go.wait()
        return "yes"

    client = await opened(lambda builder: builder.on_permission(decide))
    answers = {}

    async def ask(session):
        answers[session] = (await agent.request("session/request_permission", permission(session)))["outcome"]

    with bound():
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(ask, "one")
            tasks.start_soon(ask, "two")
            await anyio.wait_all_tasks_blocked()
            await client.session("one").cancel()
            await client.ext_request("_ping")
            assert answers == {"one": {"outcome": "cancelled"}}
            let_go.set()
    assert answers["two"] == {"outcome": "selected", "optionId": "yes"}


async def test_a_permission_that_crosses_the_cancel_is_not_put_to_anybody(agent, opened, asked, bound):
    agent.answer("session/prompt", NEVER)
    client = await opened(lambda builder: builder.on_permission(asked))
    session = client.session("s")
    handle = await session.start("hi")
    await session.cancel()
    with bound():
        assert await agent.request("session/request_permission", permission()) == CANCELLED
    assert asked.calls == 0
    agent.own_end.write(b'{"jsonrpc":"2.0","id":%d,"result":{"stopReason":"cancelled"}}' % handle.request_id)
    await handle.result()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(agent.request, "session/request_permission", permission())
        with bound():
            await asked.called.wait()
        tasks.cancel_scope.cancel()


async def test_a_held_permission_is_cancelled_without_being_asked(agent, opened, asked, bound):
    let_go = anyio.Event()

    async def handle(_update):
        await let_go.wait()

    def customize(builder):
        builder.on_update(handle)
        builder.on_permission(asked)

    client = await opened(customize)
    agent.say("s", "slow")
    answers = []

    async def ask():
        answers.append(await agent.request("session/request_permission", permission()))

    with bound():
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(ask)
            await anyio.wait_all_tasks_blocked()
            await client.session("s").cancel()
    let_go.set()
    assert (answers, asked.calls) == ([CANCELLED], 0)


async def test_an_agent_that_withdraws_its_request_is_told_so_and_the_handler_stops(agent, opened, asked, bound):
    await opened(lambda builder: builder.on_permission(asked))
    codes = []

    async def ask():
        with pytest.raises(PeerError) as failure:
            await agent.request("session/request_permission", permission())
        codes.append(failure.value.code)

    with bound():
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(ask)
            await asked.called.wait()
            agent.notify("$/cancel_request", {"requestId": 1})
    assert codes == [-32800]
    assert asked.cancelled == 1


async def test_a_held_request_that_is_withdrawn_never_reaches_its_handler(agent, opened, asked, bound):
    let_go = anyio.Event()

    async def handle(_update):
        await let_go.wait()

    def customize(builder):
        builder.on_update(handle)
        builder.on_permission(asked)

    await opened(customize)
    agent.say("s", "slow")
    codes = []

    async def ask():
        with pytest.raises(PeerError) as failure:
            await agent.request("session/request_permission", permission())
        codes.append(failure.value.code)

    with bound():
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(ask)
            await anyio.wait_all_tasks_blocked()
            agent.notify("$/cancel_request", {"requestId": 1})
    let_go.set()
    assert (codes, asked.calls) == ([-32800], 0)


@pytest.mark.parametrize("params", [{}, {"requestId": 99}, {"requestId": {}}])
async def test_withdrawing_what_is_not_there_does_nothing(agent, client, params):
    agent.notify("$/cancel_request", params)
    assert await client.ext_request("_ping") == {}


async def test_an_id_that_is_in_use_is_refused(agent, opened, asked, bound):
    await opened(lambda builder: builder.on_permission(asked))
    codes = []

    async def ask():
        with pytest.raises(PeerError) as failure:
            await agent.request("session/request_permission", permission())
        codes.append(failure.value.code)

    with bound():
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(ask)
            await asked.called.wait()
            agent.own_end.write(b'{"jsonrpc":"2.0","id":1,"method":"_x","params":{}}')
    assert (codes, asked.cancelled) == ([-32600], 0)
