"""Calls of a client: the handshake, the gates, typed errors, timeouts and their withdrawal."""

import anyio
import pytest

from acp_integration.client.builder import build_client
from acp_integration.errors import (
    AgentTimeout,
    AuthRequired,
    CapabilityMissing,
    ClientError,
    PeerError,
    RequestError,
    VersionMismatch,
)
from acp_integration.testing import NEVER
from acp_integration.types import Audio, Image, Resource, ResourceLink, Text

ALL = {
    "loadSession": True,
    "promptCapabilities": {"image": True, "audio": True, "embeddedContext": True},
    "mcpCapabilities": {"http": True, "sse": True},
    "sessionCapabilities": {
        name: {} for name in ("list", "delete", "resume", "close", "fork", "additionalDirectories", "systemPrompt")
    },
    "auth": {"logout": {}},
    "providers": {},
}


def methods_of(agent):
    return [message.method for message in agent.received]


async def can_everything(agent, opened):
    agent.answer("initialize", {"protocolVersion": 1, "agentCapabilities": ALL})
    return await opened()


# -- the handshake -----------------------------------------------------------------------------------------------------


async def test_initialize_again_gives_the_first_answer_and_sends_nothing(agent, client):
    assert await client.initialize() is await client.initialize()
    assert methods_of(agent) == ["initialize"]


async def test_two_tasks_that_initialize_send_one_request(agent):
    client = build_client(agent.transport)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(client.initialize)
        tasks.start_soon(client.initialize)
    assert methods_of(agent) == ["initialize"]
    await client.aclose()


async def test_a_call_before_initialize_is_refused_and_sends_nothing(agent):
    client = build_client(agent.transport)
    with pytest.raises(ClientError, match=r"Call initialize\(\) first: the agent has not answered initialize yet"):
        await client.new_session("/")
    assert agent.received == []


async def test_an_unspoken_version_names_both_and_closes_the_connection(agent, bound):
    agent.answer("initialize", {"protocolVersion": 2, "agentCapabilities": ALL})
    client = build_client(agent.transport)
    with bound(), pytest.raises(VersionMismatch) as failure:
        await client.initialize()
    assert (failure.value.ours, failure.value.theirs) == (1, 2)
    assert client.agent is None
    assert client.closed


async def test_a_silent_agent_is_given_up_after_the_initialize_timeout(agent, make_settings, bound):
    agent.answer("initialize", NEVER)
    client = build_client(agent.transport, make_settings(initialize_timeout=0.01))
    with bound(), pytest.raises(AgentTimeout) as failure:
        await client.initialize()
    assert (failure.value.method, failure.value.seconds) == ("initialize", 0.01)
    assert client.closed


# -- gates -------------------------------------------------------------------------------------------------------------

GATED = {
    "loadSession": lambda client: client.load_session("s", "/"),
    "sessionCapabilities.resume": lambda client: client.resume_session("s", "/"),
    "sessionCapabilities.fork": lambda client: client.fork_session("s", "/"),
    "sessionCapabilities.list": lambda client: client.list_sessions(),
    "sessionCapabilities.close": lambda client: client.close_session("s"),
    "sessionCapabilities.delete": lambda client: client.delete_session("s"),
    "sessionCapabilities.additionalDirectories": lambda client: client.new_session(
        "/", additional_directories=["/more"]
    ),
    "sessionCapabilities.systemPrompt": lambda client: client.new_session("/", system_prompt="Be brief"),
    "auth.logout": lambda client: client.logout(),
    "providers": lambda client: client.list_providers(),
    "mcpCapabilities.http": lambda client: client.new_session("/", mcp_servers=[{"type": "http", "name": "x"}]),
    "mcpCapabilities.sse": lambda client: client.new_session("/", mcp_servers=[{"type": "sse", "name": "x"}]),
    "promptCapabilities.image": lambda client: client.session("s").prompt([Image(b"", "image/png")]),
    "promptCapabilities.audio": lambda client: client.session("s").prompt([Audio(b"", "audio/wav")]),
    "promptCapabilities.embeddedContext": lambda client: client.session("s").prompt([Resource("file:///x", "")]),
}
ANSWERS = {
    "session/list": {"sessions": []},
    "session/fork": {"sessionId": "copy"},
    "providers/list": {"providers": []},
}


@pytest.mark.parametrize("capability", GATED)
async def test_what_the_agent_did_not_announce_is_not_sent(agent, client, capability):
    with pytest.raises(CapabilityMissing) as failure:
        await GATED[capability](client)
    assert failure.value.capability == capability
    assert not client.supports(capability)
    assert methods_of(agent) == ["initialize"]


@pytest.mark.parametrize("capability", GATED)
async def test_what_the_agent_announced_is_sent(agent, opened, capability):
    for method, answer in ANSWERS.items():
        agent.answer(method, answer)
    client = await can_everything(agent, opened)
    await GATED[capability](client)
    assert client.supports(capability)
    assert len(agent.received) == 2


@pytest.mark.parametrize("call", ["load_session", "resume_session", "new_session"])
async def test_http_servers_are_gated_however_a_session_is_opened(agent, opened, call):
    some = {"loadSession": True, "sessionCapabilities": {"resume": {}}}
    agent.answer("initialize", {"protocolVersion": 1, "agentCapabilities": some})
    client = await opened()
    arguments = ["/"] if call == "new_session" else ["s", "/"]
    with pytest.raises(CapabilityMissing, match=r"mcpCapabilities\.http"):
        await getattr(client, call)(*arguments, mcp_servers=[{"type": "http", "name": "x", "url": "http://x"}])


@pytest.mark.parametrize("marker", [True, False, None, "yes"])
async def test_a_session_capability_counts_only_when_it_is_an_object(agent, opened, marker):
    agent.answer("initialize", {"protocolVersion": 1, "agentCapabilities": {"sessionCapabilities": {"close": marker}}})
    client = await opened()
    assert not client.supports("sessionCapabilities.close")


async def test_text_and_links_need_no_capability(agent, client):
    session = await client.new_session("/")
    result = await session.prompt([Text("hi"), ResourceLink(uri="file:///x", name="x"), "there"])
    [prompt] = await agent.wait_for("session/prompt")
    assert result.stop_reason == "end_turn"
    assert prompt.params["prompt"] == [
        {"type": "text", "text": "hi"},
        {"type": "resource_link", "uri": "file:///x", "name": "x"},
        {"type": "text", "text": "there"},
    ]


async def test_supports_is_false_before_initialize(agent):
    assert not build_client(agent.transport).supports("loadSession")


# -- authentication ----------------------------------------------------------------------------------------------------

AUTH = [{"id": "key", "name": "API key"}, {"id": "tty", "name": "Login", "type": "terminal"}]


async def test_authenticate_sends_a_method_of_the_agent(agent, opened):
    agent.answer("initialize", {"protocolVersion": 1, "authMethods": AUTH})
    client = await opened()
    await client.authenticate("key")
    [sent] = await agent.wait_for("authenticate")
    assert sent.params == {"methodId": "key"}


@pytest.mark.parametrize(("method", "said"), [("tty", "in a terminal"), ("magic", "use one of key, tty")])
async def test_authenticate_refuses_what_cannot_work(agent, opened, method, said):
    agent.answer("initialize", {"protocolVersion": 1, "authMethods": AUTH})
    client = await opened()
    with pytest.raises(ClientError, match=said):
        await client.authenticate(method)
    assert methods_of(agent) == ["initialize"]


async def test_an_agent_that_wants_authentication_says_by_which_methods(agent, opened):
    def refuse(_params):
        raise RequestError(-32000, "Authentication required")

    agent.answer("initialize", {"protocolVersion": 1, "authMethods": AUTH})
    agent.answer("session/new", refuse)
    client = await opened()
    agent.answer("session/prompt", refuse)
    for call in (lambda: client.new_session("/"), lambda: client.session("s").prompt("hi")):
        with pytest.raises(AuthRequired, match="key, tty") as failure:
            await call()
        assert failure.value.auth_methods == ("key", "tty")
        assert failure.value.code == -32000


# -- answers -----------------------------------------------------------------------------------------------------------


async def test_an_error_keeps_the_peers_code_message_and_data(agent, client):
    def refuse(_params):
        raise RequestError(-32002, "No such place", {"cwd": "/nowhere"})

    agent.answer("session/new", refuse)
    with pytest.raises(PeerError) as failure:
        await client.new_session("/nowhere")
    assert (failure.value.code, failure.value.message, failure.value.data) == (
        -32002,
        "No such place",
        {"cwd": "/nowhere"},
    )
    assert failure.value.method == "session/new"


@pytest.mark.parametrize(
    ("answer", "reason"),
    [({}, "missing-required-field"), (None, "missing-result"), ({"sessionId": 5}, "unreadable-result")],
)
async def test_an_answer_that_cannot_be_used_says_why(agent, client, answer, reason):
    agent.answer("session/new", answer)
    with pytest.raises(PeerError) as failure:
        await client.new_session("/")
    assert failure.value.code == -32603
    assert failure.value.data["reason"] == reason
    assert failure.value.data["method"] == "session/new"


@pytest.mark.parametrize("answer", [None, {}])
async def test_null_is_as_good_as_an_empty_answer(agent, opened, answer):
    agent.answer("session/close", answer)
    client = await can_everything(agent, opened)
    await client.close_session("s")


async def test_an_answer_without_result_and_error_is_as_good_as_null(agent, client):
    agent.answer("session/new", NEVER)
    async with anyio.create_task_group() as tasks:

        async def call():
            with pytest.raises(PeerError) as failure:
                await client.new_session("/")
            assert failure.value.data["reason"] == "missing-result"

        tasks.start_soon(call)
        [sent] = await agent.wait_for("session/new")
        agent.own_end.write(b'{"jsonrpc":"2.0","id":%d,"result":null}' % sent.id)


@pytest.mark.parametrize("frame", [b'{"jsonrpc":"2.0","id":"%d","result":{"sessionId":"s"}}'], ids=["id as a string"])
async def test_an_answer_with_our_id_as_a_string_is_ours(agent, client, frame, bound):
    agent.answer("session/new", NEVER)
    async with anyio.create_task_group() as tasks:

        async def call():
            with bound():
                assert (await client.new_session("/")).id == "s"

        tasks.start_soon(call)
        [sent] = await agent.wait_for("session/new")
        agent.own_end.write(frame % sent.id)


async def test_an_error_that_is_no_object_still_ends_the_call(agent, client, bound):
    agent.answer("session/new", NEVER)
    async with anyio.create_task_group() as tasks:

        async def call():
            with bound(), pytest.raises(PeerError) as failure:
                await client.new_session("/")
            assert failure.value.data == "boom"

        tasks.start_soon(call)
        [sent] = await agent.wait_for("session/new")
        agent.own_end.write(b'{"jsonrpc":"2.0","id":%d,"error":"boom"}' % sent.id)


async def test_answers_out_of_order_reach_their_own_callers(agent, client, bound):
    agent.answer("_x", NEVER)
    results = {}

    async def call(name):
        results[name] = await client.ext_request("_x", {"name": name})

    with bound():
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(call, "first")
            tasks.start_soon(call, "second")
            for sent in reversed(await agent.wait_for("_x", 2)):
                agent.own_end.write(
                    b'{"jsonrpc":"2.0","id":%d,"result":"%b"}' % (sent.id, sent.params["name"].encode())
                )
    assert results == {"first": "first", "second": "second"}


@pytest.mark.parametrize("noise", [b"\xff\xfe", b"{", b"[]", b"42", b"null", b'{"jsonrpc":"1.0","id":1}', b"{}"])
async def test_what_is_no_message_ends_nothing(agent, client, noise):
    agent.own_end.write(noise)
    assert (await client.new_session("/")).id == "session-1"


async def test_bytes_that_are_no_utf_8_do_not_lose_an_answer(agent, client, bound):
    agent.answer("_x", NEVER)
    with bound():
        async with anyio.create_task_group() as tasks:

            async def call():
                assert await client.ext_request("_x") == "\ufffd"

            tasks.start_soon(call)
            [sent] = await agent.wait_for("_x")
            agent.own_end.write(b'{"jsonrpc":"2.0","id":%d,"result":"\xff"}' % sent.id)


# -- timeouts and cancel -----------------------------------------------------------------------------------------------


async def test_a_timeout_withdraws_the_request_once_and_drops_the_late_answer(agent, opened, make_settings, bound):
    agent.answer("session/new", NEVER)
    client = await opened(settings=make_settings(request_timeout=0.01))
    with bound(), pytest.raises(AgentTimeout, match=r"did not answer session/new within 0\.01 s"):
        await client.new_session("/")
    [sent] = await agent.wait_for("session/new")
    [withdrawn] = await agent.wait_for("$/cancel_request")
    assert withdrawn.params == {"requestId": sent.id}
    agent.own_end.write(b'{"jsonrpc":"2.0","id":%d,"result":{"sessionId":"late"}}' % sent.id)
    await client.ext_notification("_done")
    await agent.wait_for("_done")
    assert methods_of(agent).count("$/cancel_request") == 1


async def test_a_cancelled_call_ends_at_once_and_withdraws_its_request(agent, client, bound):
    agent.answer("_slow", NEVER)
    with bound():
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(client.ext_request, "_slow")
            await agent.wait_for("_slow")
            tasks.cancel_scope.cancel()
        await agent.wait_for("$/cancel_request")


async def test_cancelling_one_call_leaves_the_others(agent, client, bound):
    agent.answer("_slow", NEVER)
    agent.answer("_fast", lambda _: release.wait())
    release = anyio.Event()
    with bound():
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(client.ext_request, "_fast")
            await agent.wait_for("_fast")
            with anyio.move_on_after(0.01):
                await client.ext_request("_slow")
            release.set()
    assert [m.params for m in agent.received if m.method == "$/cancel_request"] == [
        {"requestId": next(m.id for m in agent.received if m.method == "_slow")}
    ]


async def test_an_extension_may_come_before_initialize(agent, bound):
    client = build_client(agent.transport)
    with bound():
        assert await client.ext_request("_x") == {}
        await client.aclose()
    assert methods_of(agent) == ["_x"]


async def test_extensions_need_no_gate_and_carry_their_session(agent, client):
    agent.answer("_x", {"n": [1]})
    assert await client.ext_request("_x", {"a": 1}, session="s") == {"n": [1]}
    await client.ext_notification("_y", {"b": 2})
    [notified] = await agent.wait_for("_y")
    assert notified.params == {"b": 2}


async def test_a_relative_directory_is_sent_as_an_absolute_one(agent, client, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    await client.new_session("project")
    await client.new_session("C:\\project")
    sent = [message.params["cwd"] for message in await agent.wait_for("session/new", 2)]
    assert sent == [str(tmp_path / "project"), "C:\\project"]


async def test_the_list_of_servers_is_sent_though_there_are_none(agent, opened):
    client = await can_everything(agent, opened)
    await client.new_session("/")
    await client.load_session("s", "/")
    await client.resume_session("s", "/")
    for method in ("session/new", "session/load", "session/resume"):
        assert [message.params["mcpServers"] for message in await agent.wait_for(method)] == [[]]
