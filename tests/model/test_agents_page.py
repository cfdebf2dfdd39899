"""The page on agents: its examples run, its tables are complete."""

import inspect
import re
from pathlib import Path
from typing import Any

import pytest

from acp_integration import AcpSession, PromptContext, SyncPromptContext, plugins
from acp_integration.agents import acp_agent, declaration_of
from acp_integration.assembly import AgentBuilder
from acp_integration.context import ConnectedClient, SyncAcpSession
from acp_integration.context.blocking_tools import SyncTerminal, SyncToolCall
from acp_integration.context.terminals import Terminal
from acp_integration.context.toolcalls import RunningToolCall
from acp_integration.handlers import On
from acp_integration.interception import Interceptor
from acp_integration.observers import Observer

pytestmark = pytest.mark.sdk

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "agents.md").read_text()
BLOCKS = re.findall(r"^```python\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
CODE = set(re.findall(r"`([\w.]+)`", PAGE))
ANSWERS = {
    "session/request_permission": {"outcome": {"outcome": "selected", "optionId": "allow"}},
    "terminal/create": {"terminalId": "t"},
    "terminal/wait_for_exit": {"exitCode": 0},
    "terminal/output": {"output": "", "truncated": False, "exitStatus": {"exitCode": 0}},
    "terminal/release": {},
}
INTERNAL = {"bridge", "call", "encoded", "rest", "write", "settle"}


def names_of(*kinds: type) -> set[str]:
    found = {name for kind in kinds for name in dir(kind) if not name.startswith("_")}
    return found - INTERNAL


@pytest.mark.parametrize("block", BLOCKS, ids=range(len(BLOCKS)))
async def test_an_example_runs(connect_to, everything, block):
    namespace: dict[str, Any] = {"__name__": "example"}
    exec(compile(block, "agents.md", "exec"), namespace)
    tests = [value for name, value in namespace.items() if name.startswith("test_")]
    for test in tests:
        await test()
    if tests:
        return
    (prompt,), (answer,) = (
        re.findall("^# prompt: (.*)$", block, re.MULTILINE),
        re.findall("^# answer: (.*)$", block, re.MULTILINE),
    )
    (agent,) = (value for value in namespace.values() if declaration_of(value) is not None)
    builder = namespace.get("builder") or AgentBuilder(agent)
    async with connect_to(builder.build_factory()) as client:
        client.answers.update(ANSWERS)
        assert "result" in await client.ask(prompt, **everything)
        assert client.text == answer


def test_every_kind_of_handler_has_its_line():
    kinds = {f"on.{name}" for name in vars(On) if not name.startswith("_")}
    assert set(re.findall(r"^\| `(on\.\w+)` \|", PAGE, re.MULTILINE)) == kinds


@pytest.mark.parametrize(
    "kinds",
    [
        (AcpSession, SyncAcpSession),
        (PromptContext, SyncPromptContext),
        (ConnectedClient,),
        (RunningToolCall, SyncToolCall),
        (Terminal, SyncTerminal),
        (Interceptor,),
        (Observer,),
    ],
    ids=lambda kinds: kinds[0].__name__,
)
def test_every_name_of_a_context_is_on_the_page(kinds):
    assert names_of(*kinds) <= CODE


def test_async_and_sync_contexts_have_the_same_names():
    assert names_of(PromptContext) == names_of(SyncPromptContext)
    assert names_of(AcpSession) == names_of(SyncAcpSession)
    assert names_of(RunningToolCall) == names_of(SyncToolCall)
    assert names_of(Terminal) - {"release"} == names_of(SyncTerminal)


def test_every_argument_and_hook_is_on_the_page():
    assert set(inspect.signature(acp_agent).parameters) <= CODE
    assert {name for name in vars(plugins) if name.startswith("acp_")} - {"acp_integration"} <= CODE
    assert set(inspect.signature(AgentBuilder.__init__).parameters) - {"self", "agent", "settings"} <= CODE
