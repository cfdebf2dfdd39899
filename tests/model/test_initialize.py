"""What an agent advertises is exactly what it has handlers for."""

from typing import Any

import pytest
from acp.schema import InitializeResponse

from acp_integration import PromptContext, acp_agent, on
from acp_integration.capabilities import NOT_ADVERTISED, PROVIDERS, SESSION_CAPABILITIES
from acp_integration.handlers import On
from acp_integration.wire import methods

pytestmark = pytest.mark.sdk


def full_agent(**prompt):
    class Agent:
        @on.prompt(**prompt)
        async def answer(self, turn: PromptContext): ...
        @on.initialize
        async def initialize(self): ...
        @on.authenticate
        async def authenticate(self, method_id: str): ...
        @on.logout
        async def logout(self): ...
        @on.new_session
        async def new(self) -> dict[str, Any]:
            return {"sessionId": "s"}

        @on.load_session
        async def load(self, session_id: str): ...
        @on.resume_session
        async def resume(self, session_id: str): ...
        @on.list_sessions
        async def listed(self) -> dict[str, Any]:
            return {"sessions": []}

        @on.close_session
        async def close(self, session_id: str): ...
        @on.delete_session
        async def delete(self, session_id: str): ...
        @on.fork_session
        async def fork(self, session_id: str) -> dict[str, Any]:
            return {"sessionId": "fork"}

        @on.set_mode
        async def mode(self, mode_id: str): ...
        @on.set_config_option
        async def option(self, config_id: str, value): ...
        @on.cancel
        async def cancel(self, session_id: str) -> None: ...
        @on.list_providers
        async def providers(self) -> dict[str, Any]:
            return {"providers": []}

        @on.set_provider
        async def set_provider(self, provider_id: str): ...
        @on.disable_provider
        async def disable_provider(self, provider_id: str): ...
        @on.mcp("mcp/connect")
        async def mcp_connect(self) -> dict[str, Any]:
            return {"connectionId": "c"}

        @on.mcp("mcp/message")
        async def mcp(self) -> Any:
            return {"tools": []}

        @on.mcp("mcp/disconnect")
        async def mcp_disconnect(self): ...

    return acp_agent(
        "full",
        title="Full",
        version="2.1",
        auth_methods=[
            {"id": "key", "name": "Key"},
            {"id": "tty", "name": "Terminal", "type": "terminal", "args": ["--login"], "env": ["A=1"]},
        ],
        mcp_http=True,
        mcp_sse=True,
        additional_directories=True,
        modes=["ask", "code"],
        config_options=[{"id": "web", "name": "Web"}],
    )(Agent)


async def test_a_full_agents_exact_answer(serve, everything):
    async with serve(full_agent(image=True, audio=True, embedded_context=True)) as client:
        answer = await client.initialize(**everything)
    assert answer == {
        "protocolVersion": 1,
        "agentCapabilities": {
            "loadSession": True,
            "mcpCapabilities": {"http": True, "sse": True, "acp": True},
            "promptCapabilities": {"image": True, "audio": True, "embeddedContext": True},
            "sessionCapabilities": {
                "resume": {},
                "list": {},
                "close": {},
                "delete": {},
                "fork": {},
                "additionalDirectories": {},
            },
            "auth": {"logout": {}},
            "providers": {},
        },
        "authMethods": [
            {"id": "key", "name": "Key"},
            {"id": "tty", "name": "Terminal", "type": "terminal", "args": ["--login"], "env": {"A": "1"}},
        ],
        "agentInfo": {"name": "full", "version": "2.1", "title": "Full"},
    }


async def test_a_minimal_agents_exact_answer(serve):
    @acp_agent
    async def minimal(turn: PromptContext): ...

    async with serve(minimal) as client:
        answer = await client.initialize()
    assert answer == {
        "protocolVersion": 1,
        "agentCapabilities": {
            "loadSession": False,
            "mcpCapabilities": {"http": False, "sse": False},
            "promptCapabilities": {"image": False, "audio": False, "embeddedContext": False},
        },
        "agentInfo": {"name": "minimal", "version": "unknown"},
    }


async def test_every_advertised_method_is_answered(serve):
    calls = {
        "session/load": {"cwd": "/x", "sessionId": "s", "mcpServers": []},
        "session/resume": {"cwd": "/x", "sessionId": "s"},
        "session/list": {},
        "session/fork": {"cwd": "/x", "sessionId": "s"},
        "session/set_mode": {"sessionId": "s", "modeId": "code"},
        "session/set_config_option": {"sessionId": "s", "configId": "web", "value": True, "type": "boolean"},
        "providers/list": {},
        "providers/set": {"providerId": "p", "apiType": "openai", "baseUrl": "https://example.org"},
        "providers/disable": {"providerId": "p"},
        "mcp/connect": {"serverId": "m"},
        "mcp/message": {"serverId": "m", "requestId": "1", "method": "tools/list"},
        "mcp/disconnect": {"connectionId": "c"},
        "session/close": {"sessionId": "s"},
        "session/delete": {"sessionId": "s"},
        "logout": {},
    }
    async with serve(full_agent()) as client:
        await client.initialize()
        await client.call("authenticate", methodId="key")
        await client.new_session()
        for method, params in calls.items():
            assert isinstance(await client.call(method, **params), dict), method


async def test_what_has_no_handler_is_not_found(serve):
    @acp_agent
    async def minimal(turn: PromptContext): ...

    async with serve(minimal) as client:
        await client.initialize()
        advertised = {methods.INITIALIZE, methods.SESSION_NEW, methods.SESSION_PROMPT}
        names = {name for name, method in methods.AGENT_METHODS.items() if method.kind != "notification"}
        for method in [*sorted(names - advertised), "_unknown", "mcp/anything", "nonsense"]:
            error = await client.error(method)
            assert error == {"code": -32601, "message": f"Method not found: {method}"}


async def test_terminal_authentication_is_for_clients_that_can(serve):
    async with serve(full_agent()) as client:
        answer = await client.initialize()
        assert [method["id"] for method in answer["authMethods"]] == ["key"]


async def test_each_connection_is_answered_for_its_own_client(build, connect_to, everything):
    factory = build(full_agent())
    async with connect_to(factory) as able, connect_to(factory) as plain:
        assert len((await able.initialize(**everything))["authMethods"]) == 2
        assert len((await plain.initialize())["authMethods"]) == 1


@pytest.mark.parametrize("version", [0, 1, 2, 99])
async def test_the_version_is_the_one_that_is_spoken(serve, version):
    async with serve(full_agent()) as client:
        assert (await client.call("initialize", protocolVersion=version))["protocolVersion"] == 1


async def test_the_authors_answer_is_laid_over_the_derived_one(serve):
    @acp_agent("derived", auth_methods=[{"id": "a", "name": "A"}, {"id": "b", "name": "B"}])
    class Agent:
        @on.initialize
        async def initialize(self, client_info: Any) -> dict[str, Any]:
            return {
                "agentCapabilities": {
                    "loadSession": True,
                    "promptCapabilities": {"audio": True, "image": False},
                    "_meta": {"x": 1},
                },
                "authMethods": [{"id": "b", "name": "Better"}, {"id": "c", "name": "C"}],
                "agentInfo": {"name": "own", "version": "9"},
                "_meta": {"hello": client_info.name},
            }

        @on.prompt(image=True)
        async def answer(self, turn: PromptContext): ...
        @on.authenticate
        async def authenticate(self): ...

    async with serve(Agent) as client:
        info = {"name": "editor", "version": "1"}
        answer = await client.call("initialize", protocolVersion=1, clientInfo=info)
    assert answer["agentCapabilities"]["loadSession"]
    assert answer["agentCapabilities"]["promptCapabilities"] == {"image": True, "audio": True, "embeddedContext": False}
    assert answer["agentCapabilities"]["_meta"] == {"x": 1}
    assert [method["name"] for method in answer["authMethods"]] == ["A", "Better", "C"]
    assert (answer["agentInfo"]["name"], answer["_meta"]) == ("own", {"hello": "editor"})


async def test_an_sdk_response_keeps_what_was_derived(serve):
    @acp_agent
    class Agent:
        @on.initialize
        async def initialize(self) -> InitializeResponse:
            return InitializeResponse(protocol_version=1)

        @on.prompt(image=True)
        async def answer(self, turn: PromptContext): ...

    async with serve(Agent) as client:
        assert (await client.initialize())["agentCapabilities"]["promptCapabilities"]["image"]


async def test_authentication_comes_before_a_session(serve):
    @acp_agent(auth_methods=[{"id": "key", "name": "Key"}])
    class Agent:
        @on.authenticate
        async def authenticate(self, method_id: str): ...
        @on.logout
        async def logout(self): ...
        @on.prompt
        async def answer(self, turn: PromptContext) -> str:
            return str(turn.client.authenticated)

    async with serve(Agent) as client:
        await client.initialize()
        assert (await client.error("session/new", cwd="/x", mcpServers=[]))["code"] == -32000
        assert (await client.error("authenticate", methodId="other"))["code"] == -32602
        await client.call("authenticate", methodId="key")
        await client.prompt(await client.new_session())
        assert client.text == "True"
        await client.call("logout")
        assert (await client.error("session/new", cwd="/x", mcpServers=[]))["code"] == -32000


async def test_a_refused_authentication_opens_nothing(serve):
    @acp_agent(auth_methods=[{"id": "key", "name": "Key"}])
    class Agent:
        @on.authenticate
        async def authenticate(self, method_id: str):
            raise PermissionError

        @on.prompt
        async def answer(self, turn: PromptContext): ...

    async with serve(Agent) as client:
        await client.initialize()
        await client.error("authenticate", methodId="key")
        assert (await client.error("session/new", cwd="/x", mcpServers=[]))["code"] == -32000


def test_every_kind_of_handler_says_how_it_is_advertised():
    kinds = [
        name for name in vars(On) if not name.startswith("_") and name not in ("mcp", "ext_request", "ext_notification")
    ]
    others = {methods.AUTHENTICATE, methods.LOGOUT, methods.SESSION_LOAD}
    advertised = {*SESSION_CAPABILITIES, *PROVIDERS, *NOT_ADVERTISED, *others}
    marked = {getattr(on, kind)(lambda: None).__acp_handlers__[0].method for kind in kinds}
    assert marked == advertised
    assert len(kinds) == len(marked)
