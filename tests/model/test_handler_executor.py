"""Where sync handlers run: what the settings name wins over the framework's, and is checked when the agent is built."""

import contextlib
import threading
from typing import Any

import pytest

from acp_integration import AcpAgentSettings, SyncPromptContext, acp_agent, on
from acp_integration.assembly import AgentBuilder
from acp_integration.errors import ConfigurationError, DiscoveryError
from acp_integration.testing import connect


class Inline:
    """Runs handlers on the loop's own thread."""

    async def run(self, function: Any) -> Any:
        return function()

    def scope(self) -> Any:
        return contextlib.nullcontext()


class NoExecutor:
    """Has neither verb."""


@acp_agent(name="where")
class Where:
    @on.prompt
    def answer(self, turn: SyncPromptContext) -> str:
        return threading.current_thread().name


def settings(name: str) -> AcpAgentSettings:
    return AcpAgentSettings.from_mapping({"acp.agent.handler-executor": name})


async def thread_of(**options: Any) -> str:
    async with connect(Where, **options) as client:
        session = await client.new_session("/")
        return (await session.prompt("where?")).text


async def test_the_named_executor_runs_the_handlers() -> None:
    assert await thread_of(settings=settings(f"{__name__}:Inline")) == threading.current_thread().name


async def test_none_is_own_threads_whatever_the_framework_gives() -> None:
    assert await thread_of(executor=Inline()) == threading.current_thread().name
    assert await thread_of(settings=settings("none"), executor=Inline()) != threading.current_thread().name


@pytest.mark.parametrize(
    ("name", "error"), [("no_such_module:X", DiscoveryError), (f"{__name__}:NoExecutor", ConfigurationError)]
)
def test_a_name_that_is_no_executor_fails_the_build(name: str, error: type[Exception]) -> None:
    with pytest.raises(error):
        AgentBuilder(Where, settings(name)).build_factory()
