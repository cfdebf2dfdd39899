"""Every rule of the runtime is tested twice: in memory, and on a real process."""

import os
import sys
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

import pytest

from acp_integration import AcpAgentSettings

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

import raw_peer  # noqa: E402  # beside this file, which is no package
import rule_agents  # noqa: E402  # beside this file, which is no package

Connect = Callable[..., AbstractAsyncContextManager[raw_peer.RawPeer]]


@pytest.fixture(params=["memory", "stdio"])
def connect(request: pytest.FixtureRequest, open_process: Any) -> Connect:
    """`connect("RuleAgent", {"cancel-grace-period": "1s"})` opens a connection with the agent."""

    def connect(agent: str = "RuleAgent", settings: dict[str, Any] | None = None, **options: Any) -> Any:
        settings = settings or {}
        if request.param == "memory":
            return raw_peer.memory_peer(
                getattr(rule_agents, agent), AcpAgentSettings.from_mapping({"acp.agent": settings})
            )
        return raw_peer.process_peer(open_process, stdio_command(agent), env=stdio_environ(settings), **options)

    return connect


@pytest.fixture
def in_memory() -> Connect:
    """The same, in memory only: for what a test looks at inside the process."""

    def connect(agent: Any = "RuleAgent", settings: dict[str, Any] | None = None) -> Any:
        declared = getattr(rule_agents, agent) if isinstance(agent, str) else agent
        return raw_peer.memory_peer(declared, AcpAgentSettings.from_mapping({"acp.agent": settings or {}}))

    return connect


@pytest.fixture(autouse=True)
def nothing_started() -> None:
    rule_agents.started.clear()


def stdio_command(agent: str) -> list[str]:
    return [sys.executable, "-m", "acp_integration", "stdio", f"rule_agents:{agent}", "--app-dir", str(HERE)]


def stdio_environ(settings: dict[str, Any]) -> dict[str, str]:
    keys = {
        f"ACP_AGENT_{key.upper().replace('-', '_').replace('.', '_')}": str(value) for key, value in settings.items()
    }
    return {**os.environ, **keys, "PYTHONWARNINGS": "error"}
