"""Extension points: plugins given and installed, checked when the agent is built, and observers."""

import sys
from importlib import metadata
from types import SimpleNamespace
from typing import Any

import pytest

from acp_integration import AcpAgentSettings, PromptContext, acp_agent
from acp_integration.errors import ConfigurationError
from acp_integration.execution import ThreadExecutor
from acp_integration.interception import Interceptor
from acp_integration.observers import Observer
from acp_integration.plugins import hookimpl
from acp_integration.store import MemoryStore

events: list[Any] = []


@acp_agent
async def agent(turn: PromptContext, extra: Any = None):
    return f"answer {extra}"


class Records(Interceptor):
    def __init__(self, name: str):
        self.name = name

    def pre_invoke(self, invocation):
        if invocation.turn is not None:
            events.append(self.name)
        return True


class Watches(Observer):
    def connection_opened(self, peer):
        events.append("connection opened")

    def connection_closed(self, peer):
        events.append("connection closed")

    def session_opened(self, peer, session_id):
        events.append("session opened")

    def session_closed(self, peer, session_id):
        events.append("session closed")

    def turn_started(self, peer, session_id):
        events.append("turn started")

    def turn_ended(self, peer, session_id, seconds, *, cancelled):
        events.append(("turn ended", cancelled, seconds < 5))


class Gives:
    def supports_parameter(self, parameter):
        return parameter.name == "extra"

    def resolve_argument(self, parameter, invocation):
        return "from a plugin"


class Shouts:
    def supports_return_type(self, annotation):
        return True

    def handle(self, value, invocation):
        return value.upper()


class Plugin:
    @hookimpl
    def acp_interceptors(self, agent):
        assert agent.__name__ == "agent"
        return [Records("plugin")]

    @hookimpl
    def acp_argument_resolvers(self):
        return [Gives()]

    @hookimpl
    def acp_return_value_handlers(self):
        return [Shouts()]

    @hookimpl
    def acp_observers(self):
        return [Watches()]


@pytest.fixture(autouse=True)
def no_events():
    events.clear()


async def test_a_plugin_adds_to_what_the_builder_was_given(serve):
    async with serve(agent, plugins=[Plugin()], interceptors=[Records("given")]) as client:
        await client.ask()
        assert client.text == "ANSWER FROM A PLUGIN"
    assert events == [
        "connection opened",
        "session opened",
        "turn started",
        "given",
        "plugin",
        ("turn ended", False, True),
        "connection closed",
    ]


async def test_a_plugin_chooses_the_executor_unless_one_was_given(serve):
    used = []

    class Executor(ThreadExecutor):
        async def run(self, function):
            used.append(self)
            return await super().run(function)

    class WithExecutor:
        @hookimpl
        def acp_handler_executor(self):
            return plugins

    plugins, given = Executor(), Executor()

    @acp_agent
    def sync() -> None: ...

    async with serve(sync, plugins=[WithExecutor()]) as client:
        await client.ask()
    async with serve(sync, plugins=[WithExecutor()], executor=given) as client:
        await client.ask()
    assert used == [plugins, given]


def test_a_misspelt_hook_fails_the_build(build):
    class Misspelt:
        @hookimpl
        def acp_interceptor(self):
            return []

    with pytest.raises(ConfigurationError, match="acp_interceptor"):
        build(agent, plugins=[Misspelt()])


def test_a_hook_with_a_wrong_argument_fails_the_build(build):
    class Wrong:
        @hookimpl
        def acp_interceptors(self, agnet):
            return []

    with pytest.raises(ConfigurationError, match="agnet"):
        build(agent, plugins=[Wrong()])


@pytest.fixture
def installed(monkeypatch):
    """Two installed plugins, `one` and `two`."""
    modules = {}
    for name in ("one", "two"):
        plugin = SimpleNamespace(acp_interceptors=hookimpl(lambda name=name: [Records(name)]))
        modules[name] = plugin
        monkeypatch.setitem(sys.modules, f"plugin_{name}", plugin)
    points = [metadata.EntryPoint(name, f"plugin_{name}", "acp_integration") for name in modules]
    distribution = SimpleNamespace(entry_points=points, metadata={"name": "plugins"})
    monkeypatch.setattr("importlib.metadata.distributions", lambda: [distribution])


def settings(*names: str) -> AcpAgentSettings:
    return AcpAgentSettings.from_mapping({"acp.agent.plugins": ",".join(names)})


@pytest.mark.parametrize(
    ("names", "expected"),
    [((), []), (("two",), ["two"]), (("all",), ["one", "two"]), (("all", "-one"), ["two"])],
    ids=["none", "named", "all", "blocked"],
)
async def test_installed_plugins_are_used_when_they_are_named(serve, installed, names, expected):
    async with serve(agent, settings(*names) if names else None) as client:
        await client.ask()
    assert events == expected


def test_a_name_that_nothing_has_fails_the_build(build, installed):
    with pytest.raises(ConfigurationError, match="plugins=three names no installed plugin"):
        build(agent, settings=settings("three"))


async def test_an_observer_that_fails_changes_nothing(serve):
    class Broken:
        def turn_started(self, peer, session_id):
            raise RuntimeError

    async with serve(agent, observers=[Broken(), Watches()]) as client:
        assert "result" in await client.ask()
    assert "turn started" in events


async def test_an_observer_sees_a_cancelled_turn_and_a_closed_session(serve):
    @acp_agent
    async def waits(turn: PromptContext):
        await turn.send_message("waiting")
        await turn.wait_cancelled()

    async with serve(waits, observers=[Watches()], store=MemoryStore()) as client:
        await client.initialize()
        session = await client.new_session()
        prompt = client.start_prompt(session)
        await client.seen(lambda frame: frame.get("method") == "session/update")
        await client.call("session/close", sessionId=session)
        await client.answer(prompt)
    assert events[2:5] == ["turn started", ("turn ended", True, True), "session closed"]
