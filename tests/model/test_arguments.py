"""Arguments by annotation, by name where there is none; never by what a client puts into `_meta`."""

import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Optional

import pytest
from pydantic import BaseModel

import acp_integration
from acp_integration import AcpSession, PromptContext, SyncPromptContext, acp_agent, on
from acp_integration.context import ConnectedClient, SyncAcpSession

pytestmark = pytest.mark.sdk


if TYPE_CHECKING:
    import acp
    from acp import schema
    from acp.schema import NewSessionRequest, PromptRequest
    from elsewhere import Unheard

Alias = PromptContext


@dataclass
class Point:
    x: int
    y: int = 0


class Model(BaseModel):
    name: str


async def annotated(turn: PromptContext): ...
async def text(turn: "PromptContext"): ...
async def alias(turn: Alias): ...
async def dotted(turn: "acp_integration.PromptContext"): ...
async def optional(turn: Optional["PromptContext"] = None): ...
async def union(turn: "PromptContext | None" = None): ...
async def marked(turn: Annotated[PromptContext, "with a mark"]): ...
async def named(turn): ...
async def context(context): ...
async def other_name(whatever: PromptContext): ...
async def positional(turn: PromptContext, /): ...
async def variadic(turn: PromptContext, *args: Any, **kwargs: Any): ...
async def with_default(turn: PromptContext, limit: int = 3): ...
def sync(turn: SyncPromptContext): ...
def sync_named(turn): ...
async def session(session: AcpSession): ...
async def client(client: ConnectedClient): ...
async def session_id(session_id: str): ...
async def unresolvable_with_default(turn: PromptContext, unheard: "Unheard" = None): ...


FUNCTIONS = [
    annotated, text, alias, dotted, optional, union, marked, named, context, other_name, positional, variadic,
    with_default, sync, sync_named, session, client, session_id, unresolvable_with_default,
]  # fmt: skip


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda function: function.__name__)
async def test_a_prompt_handler_gets_what_it_asks_for(serve, function):
    async with serve(acp_agent(function)) as client:
        assert (await client.ask())["result"] == {"stopReason": "end_turn"}


async def model(request: "PromptRequest"): ...
async def dotted_model(request: "schema.PromptRequest"): ...
async def fully_dotted_model(request: "acp.schema.PromptRequest"): ...
async def optional_model(request: "PromptRequest | None"): ...
async def request_by_name(request): ...


@pytest.mark.parametrize(
    "function",
    [model, dotted_model, fully_dotted_model, optional_model, request_by_name],
    ids=lambda function: function.__name__,
)
async def test_the_sdks_request_is_loaded_on_demand(serve, function):
    seen = []

    @acp_agent
    class Agent:
        @on.prompt
        async def answer(self, request): ...

    async def answer(self, request):
        seen.append(request)

    answer.__annotations__ = function.__annotations__
    Agent.answer = on.prompt(answer)
    async with serve(Agent) as client:
        await client.ask("hi")
    assert type(seen[0]).__name__ == "PromptRequest"
    assert seen[0].prompt[0].text == "hi"
    assert "acp.schema" in sys.modules


async def test_a_class_inside_a_function_finds_its_names(serve):
    Local = PromptContext  # noqa: N806  # a class by another name

    @acp_agent
    class Agent:
        class Own:
            pass

        @on.prompt
        async def answer(self, turn: "Local", own: "Own | None" = None):
            assert isinstance(turn, Local)
            return "found"

    async with serve(Agent) as client:
        await client.ask()
        assert client.text == "found"


async def test_fields_of_the_request_come_by_their_names(serve):
    seen: dict[str, Any] = {}

    @acp_agent(modes=["a", "b"])
    class Agent:
        @on.new_session
        async def new(self, cwd: str, mcp_servers, additional_directories: list[str], request: "NewSessionRequest"):
            seen.update(cwd=cwd, servers=mcp_servers, more=additional_directories, model=type(request).__name__)
            return {"sessionId": "s"}

        @on.set_mode
        def mode(self, session: SyncAcpSession, mode_id):
            seen.update(mode=mode_id, session=session.id)

        @on.prompt
        async def answer(self, turn): ...

    async with serve(Agent) as client:
        await client.initialize()
        await client.call("session/new", cwd="/x", mcpServers=[], additionalDirectories=["/y"])
        await client.call("session/set_mode", sessionId="s", modeId="b")
    assert seen == {
        "cwd": "/x",
        "servers": [],
        "more": ["/y"],
        "model": "NewSessionRequest",
        "mode": "b",
        "session": "s",
    }


async def test_meta_never_reaches_an_argument(serve):
    seen = []

    @acp_agent
    class Agent:
        @on.new_session
        async def new(self, cwd: str, meta: dict[str, Any]):
            seen.append((cwd, meta))
            return {"sessionId": "s"}

        @on.prompt
        async def answer(self, turn: PromptContext):
            seen.append((turn.text, turn.meta))

    async with serve(Agent) as client:
        await client.initialize()
        await client.new_session("/right", _meta={"cwd": "/wrong", "self": 1})
        await client.call(
            "session/prompt",
            sessionId="s",
            prompt=[{"type": "text", "text": "right"}],
            _meta={"turn": 1, "text": "wrong"},
        )
    assert seen == [("/right", {"cwd": "/wrong", "self": 1}), ("right", {"turn": 1, "text": "wrong"})]


OPTIONS = [
    {"id": "model", "name": "Model", "options": [{"value": "fast", "name": "Fast"}, {"value": "good", "name": "Good"}]},
    {"id": "web", "name": "Web"},
]


@pytest.mark.parametrize(
    ("kind", "taken", "refused"),
    [
        (str, ({"configId": "model", "value": "good"},), ({"configId": "web", "value": True, "type": "boolean"},)),
        (bool, ({"configId": "web", "value": True, "type": "boolean"},), ({"configId": "model", "value": "good"},)),
        (
            object,
            ({"configId": "model", "value": "good"}, {"configId": "web", "value": True, "type": "boolean"}),
            (),
        ),
    ],
    ids=["str", "bool", "object"],
)
async def test_a_config_value_of_the_wrong_kind_is_refused_without_a_call(serve, everything, kind, taken, refused):
    seen = []

    async def option(self, config_id: str, value):
        seen.append((config_id, value))

    option.__annotations__["value"] = kind

    @acp_agent(config_options=OPTIONS)
    class Agent:
        set_option = on.set_config_option(option)

        @on.prompt
        async def answer(self, turn): ...

    async with serve(Agent) as client:
        await client.initialize(**everything)
        session = await client.new_session()
        for params in taken:
            await client.call("session/set_config_option", sessionId=session, **params)
        for params in refused:
            error = await client.error("session/set_config_option", sessionId=session, **params)
            assert error["code"] == -32602
            assert "params.value" in error["message"]
    assert seen == [(params["configId"], params["value"]) for params in taken]


@pytest.mark.parametrize(
    ("kind", "params", "expected"),
    [
        (Point, {"x": 1}, Point(1)),
        (Model, {"name": "n"}, Model(name="n")),
        (dict[str, int], {"a": 1}, {"a": 1}),
        (list[int], [1, 2], [1, 2]),
        (str | None, None, None),
        (Any, {"free": [1]}, {"free": [1]}),
    ],
    ids=["dataclass", "pydantic", "dict", "list", "null", "any"],
)
async def test_extension_params_are_of_any_json_type(serve, kind, params, expected):
    seen = []

    async def work(self, params):
        seen.append(params)
        return {"ok": True}

    work.__annotations__["params"] = kind

    @acp_agent
    class Agent:
        handler = on.ext_request("_work")(work)

        @on.prompt
        async def answer(self, turn): ...

    async with serve(Agent) as client:
        await client.initialize()
        client.write(id="x", method="_work", params=params)
        assert (await client.answer("x"))["result"] == {"ok": True}
    assert seen == [expected]


@pytest.mark.parametrize("kind", [Point, Model], ids=["dataclass", "pydantic"])
async def test_wrong_extension_params_are_refused_without_their_value(serve, kind):
    async def work(self, params): ...

    work.__annotations__["params"] = kind

    @acp_agent
    class Agent:
        handler = on.ext_request("_work")(work)

        @on.prompt
        async def answer(self, turn): ...

    async with serve(Agent) as client:
        error = await client.error("_work", x="a secret", name=["a secret"])
        assert error["code"] == -32602
        assert "params." in error["message"]
        assert "secret" not in str(error)


async def test_custom_resolvers_come_first_and_in_order(serve):
    class Gives:
        def __init__(self, value):
            self.value = value

        def supports_parameter(self, parameter):
            return parameter.name == "turn"

        async def resolve_argument(self, parameter, invocation):
            assert invocation.method == "session/prompt"
            return self.value

    @acp_agent
    async def agent(turn: PromptContext):
        return turn

    async with serve(agent, argument_resolvers=[Gives("first"), Gives("second")]) as client:
        await client.ask()
        assert client.text == "first"


async def test_a_scope_claims_parameters_and_surrounds_the_whole_handler(serve):
    events = []

    class Scope:
        def claims(self, parameter):
            return "database" in getattr(parameter.annotation, "__metadata__", ())

        def prepare(self, handler, parameters):
            events.append([parameter.name for parameter in parameters])

            async def scoped(call, proceed):
                events.append("open")
                try:
                    return await proceed({"db": "the database"})
                finally:
                    events.append("closed")

            return scoped

    @acp_agent
    async def agent(turn: PromptContext, db: Annotated["Unheard", "database"]):
        yield str(db)
        events.append("yielded")

    async with serve(agent, scope=Scope()) as client:
        await client.ask()
        assert client.text == "the database"
    assert events == [["db"], "open", "yielded", "closed"]


async def test_what_a_scope_refuses_is_the_answer(serve):
    class Scope:
        def claims(self, parameter):
            return parameter.name == "user"

        def prepare(self, handler, parameters):
            async def scoped(call, proceed):
                raise acp_integration.RequestError(-32000, "Authentication required")

            return scoped

    @acp_agent
    async def agent(turn: PromptContext, user): ...

    async with serve(agent, scope=Scope()) as client:
        assert (await client.ask())["error"] == {"code": -32000, "message": "Authentication required"}
