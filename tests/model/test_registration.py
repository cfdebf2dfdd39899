"""A handler that is declared wrongly fails the build, and the error names class, method, parameter and the fix."""

from collections.abc import AsyncIterator, Awaitable
from types import FunctionType
from typing import Any

import pytest

from acp_integration import AcpSession, PromptContext, SyncPromptContext, acp_agent, on
from acp_integration.errors import HandlerError


def agent_with(mark: Any, handler: Any, **declared: Any) -> Any:
    """An agent with a prompt handler and one more."""

    class Agent:
        @on.prompt
        async def answer(self, turn: PromptContext) -> str:
            return "ok"

    Agent.handler = mark(FunctionType(handler.__code__, handler.__globals__, "handler"))
    Agent.handler.__annotations__ = handler.__annotations__
    return acp_agent("agent", **declared)(Agent)


async def unknown_parameter(self, mystery: int) -> dict[str, Any]: ...
async def other_request(self, request: "PromptRequest") -> dict[str, Any]: ...  # noqa: F821
async def with_session_id(self, session_id: str) -> dict[str, Any]: ...
async def with_turn(self, turn: PromptContext) -> dict[str, Any]: ...
async def with_session(self, session: AcpSession) -> dict[str, Any]: ...
async def with_config_value(self, config_value: str) -> dict[str, Any]: ...
async def returns_number(self) -> int: ...
async def returns_other(self) -> "PromptResponse": ...  # noqa: F821
async def returns_nothing(self) -> None: ...
async def yields(self) -> AsyncIterator[str]: ...
async def two_params(self, first: dict[str, Any], second: dict[str, Any]) -> dict[str, Any]: ...
async def unresolved(self, thing: "Nowhere") -> dict[str, Any]: ...  # noqa: F821
def awaits_wrong(self) -> Awaitable[int]: ...


CASES = [
    (on.new_session, unknown_parameter, "mystery", "add an argument resolver"),
    (on.new_session, other_request, "request", "take NewSessionRequest"),
    (on.new_session, with_session_id, "session_id", "names no session"),
    (on.ext_request("_x"), with_session_id, "session_id", "names no session"),
    (on.new_session, with_turn, "turn", "has no turn"),
    (on.list_sessions, with_session, "session", "has no open session"),
    (on.ext_request("_x"), with_config_value, "config_value", "only on.set_config_option"),
    (on.new_session, with_config_value, "config_value", "only on.set_config_option"),
    (on.new_session, returns_number, "", "return NewSessionResponse"),
    (on.new_session, returns_other, "", "return NewSessionResponse"),
    (on.new_session, returns_nothing, "", "return the response of session/new"),
    (on.new_session, yields, "", "only a prompt handler yields"),
    (on.new_session, awaits_wrong, "", "return NewSessionResponse"),
    (on.ext_request("_x"), returns_nothing, "", "return the response of _x"),
    (on.ext_notification("_x"), returns_number, "", "return nothing"),
    (on.cancel, returns_number, "", "return nothing"),
    (on.ext_request("_x"), two_params, "second", "put them into one type"),
    (on.new_session, unresolved, "thing", "'Nowhere' cannot be resolved"),
]


@pytest.mark.parametrize(
    ("mark", "handler", "parameter", "fix"), CASES, ids=[f"{n}-{c[1].__name__}" for n, c in enumerate(CASES)]
)
def test_a_wrong_handler_is_named_with_its_parameter_and_the_fix(build, mark, handler, parameter, fix):
    with pytest.raises(HandlerError, match=fix) as caught:
        build(agent_with(mark, handler))
    assert caught.value.parameter == parameter
    assert caught.value.method == "handler"
    assert "agent_with.<locals>.Agent.handler" in str(caught.value)


def test_a_custom_resolver_makes_an_unknown_parameter_known(build):
    class Resolver:
        def supports_parameter(self, parameter):
            return parameter.name in ("mystery", "thing")

        def resolve_argument(self, parameter, invocation):
            return 7

    build(agent_with(on.new_session, unknown_parameter), argument_resolvers=[Resolver()])
    build(agent_with(on.new_session, unresolved), argument_resolvers=[Resolver()])


def test_a_custom_return_value_handler_takes_what_nothing_else_takes(build):
    class Numbers:
        def supports_return_type(self, annotation):
            return annotation is int

        def handle(self, value, invocation):
            return {"sessionId": str(value)}

    build(agent_with(on.new_session, returns_number), return_value_handlers=[Numbers()])


def test_an_agent_handles_prompts(build):
    @acp_agent
    class Mute:
        @on.new_session
        async def new(self): ...

    with pytest.raises(HandlerError, match=r"Mute handles no prompts: decorate one method with @on\.prompt"):
        build(Mute)


def test_a_method_has_one_handler(build):
    @acp_agent
    class Twice:
        @on.prompt
        async def one(self, turn: PromptContext): ...
        @on.prompt
        async def two(self, turn: PromptContext): ...

    with pytest.raises(HandlerError, match="session/prompt has two handlers, one and two: keep one"):
        build(Twice)


def test_a_handler_handles_one_method(build):
    @acp_agent
    class Both:
        @on.prompt
        @on.authenticate
        async def one(self, turn: PromptContext): ...

    with pytest.raises(HandlerError, match=r"one: it handles authenticate and session/prompt"):
        build(Both)


def test_an_extension_is_named_with_an_underscore():
    for decorator in (on.ext_request, on.ext_notification):
        with pytest.raises(HandlerError, match="'_x', not 'x'"):
            decorator("x")
    with pytest.raises(HandlerError, match="mcp/message"):
        on.mcp("message")


def test_a_class_without_the_mark_is_no_agent(build):
    class Plain:
        pass

    with pytest.raises(HandlerError, match="is not an agent: decorate it with @acp_agent"):
        build(Plain)


def test_a_constructor_that_fails_is_reported_at_the_build(build):
    @acp_agent
    class NeedsArguments:
        def __init__(self, database):
            pass

        @on.prompt
        async def answer(self, turn: PromptContext): ...

    with pytest.raises(HandlerError, match="pass an instance"):
        build(NeedsArguments)


def test_contexts_fit_the_kind_of_handler(build):
    @acp_agent
    async def awaits(turn: SyncPromptContext) -> None: ...

    @acp_agent
    def blocks(turn: PromptContext) -> None: ...

    with pytest.raises(HandlerError, match="would block the event loop: declare it as PromptContext"):
        build(awaits)
    with pytest.raises(HandlerError, match="declare it as SyncPromptContext, or the handler as async def"):
        build(blocks)


@pytest.mark.parametrize(
    ("declared", "problem"),
    [
        ({"auth_methods": [{"id": "a", "name": "A"}]}, "need an @on.authenticate method"),
        ({"auth_methods": [{"id": "a", "name": "A", "type": "terminal"}] * 2}, "'a' is there twice"),
        (
            {"auth_methods": [{"id": "a", "name": "A", "type": "terminal", "env": ["NOVALUE"]}]},
            "'NOVALUE' of auth method 'a' is not NAME=value",
        ),
        ({"modes": [{"id": "a"}]}, r"modes\[0\].name is missing"),
        ({"modes": ["a", "a"]}, "'a' is there twice"),
        ({"config_options": [{"id": "a", "name": "A", "type": "select"}]}, r"config_options\[0\]"),
    ],
)
def test_what_an_agent_says_of_itself_is_checked(build, declared, problem):
    @acp_agent("agent", **declared)
    async def agent(turn: PromptContext): ...

    with pytest.raises(HandlerError, match=problem):
        build(agent)


def test_a_terminal_method_needs_no_authenticate_handler(build):
    @acp_agent("agent", auth_methods=[{"id": "a", "name": "A", "type": "terminal", "args": ["login"]}])
    async def agent(turn: PromptContext): ...

    build(agent)


async def set_mode(self, mode_id: str) -> None: ...
async def set_option(self, config_id: str, value: str) -> None: ...


def test_modes_and_options_come_from_somewhere(build):
    with pytest.raises(HandlerError, match=r"give @acp_agent\(modes=...\), or return them from @on.new_session"):
        build(agent_with(on.set_mode, set_mode))
    with pytest.raises(HandlerError, match=r"give @acp_agent\(config_options=...\)"):
        build(agent_with(on.set_config_option, set_option))
    build(agent_with(on.set_mode, set_mode, modes=["ask"]))


def test_private_static_and_inherited_methods_are_handlers(build):
    class Parent:
        @on.prompt
        async def answer(self, turn: PromptContext) -> str:
            return "parent"

        @on.authenticate
        async def _private(self, method_id: str) -> None: ...

    @acp_agent
    class Child(Parent):
        async def answer(self, turn: PromptContext) -> str:
            return "child"

        @on.new_session
        @staticmethod
        async def static(cwd: str) -> dict[str, Any]:
            return {"sessionId": cwd}

    build(Child)


def test_an_undecorated_method_is_no_handler(build):
    @acp_agent
    class Agent:
        @on.prompt
        async def answer(self, turn: PromptContext) -> str: ...
        async def logout(self, nonsense: int) -> None: ...

    build(Agent)
