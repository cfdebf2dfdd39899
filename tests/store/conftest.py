"""Stores of each kind, agents that use them in memory, and agents that use them in processes of their own."""

import os
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest

from acp_integration.assembly import AgentBuilder
from acp_integration.caller import LOCAL
from acp_integration.store import DurableStore, MemoryStore
from acp_integration.store.sqlite import SqliteTables
from tests.model.conftest import serving
from tests.runtime.raw_peer import RawPeer
from tests.store.remembering import Remembering

STDIO = [sys.executable, "-m", "acp_integration", "stdio", "tests.store.remembering:Remembering", "--app-dir"]


@pytest.fixture
def database(tmp_path: Path) -> Path:
    return tmp_path / "kept" / "sessions.db"


@pytest.fixture(params=["memory", "sqlite"])
def store(request: pytest.FixtureRequest, database: Path) -> Any:
    return MemoryStore(page_size=2) if request.param == "memory" else sqlite_store(database)


def sqlite_store(database: Path) -> DurableStore:
    return DurableStore(SqliteTables(database), page_size=2)


@pytest.fixture
def connect() -> Callable[..., Any]:
    """`async with connect(store, caller) as client` is a connection with the agent, in memory."""

    def connect(store: Any, caller: Any = LOCAL, agent: Any = Remembering, settings: Any = None) -> Any:
        return serving(AgentBuilder(agent, settings, store=store).build_factory(), caller)

    return connect


@asynccontextmanager
async def killable_peer(open_process: Any, command: list[str], **options: Any) -> AsyncIterator[RawPeer]:
    """An agent in a process of its own; one that is killed may leave half a line."""
    process = await open_process(*command, stderr=None, **options)  # seen when a test fails
    peer = RawPeer(process.stdin.send, process.stdin.aclose)
    peer.runtime = process

    async def read() -> None:
        rest = b""
        async for data in process.stdout:
            *lines, rest = (rest + data).split(b"\n")
            peer.record(lines)
        peer.over()

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(read)
        yield peer
        await process.stdin.aclose()
        with anyio.fail_after(20):
            await peer.ended.wait()
            await process.wait()


@pytest.fixture
def process(open_process: Any, database: Path, repo_root: Path) -> Callable[..., Any]:
    """`async with process() as peer` is the agent in a process of its own, on the same SQLite file each time."""

    def start(*command: str) -> Any:
        environ = {**os.environ, "ACP_AGENT_SESSION_STORE": f"sqlite:///{database}"}
        return killable_peer(open_process, [*(command or [*STDIO, str(repo_root)])], env=environ)

    return start
