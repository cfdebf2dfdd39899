"""Views drive agents through one client a process, which is opened when it is first asked for."""

import json
import os
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import anyio
import pytest
from asgiref.sync import sync_to_async
from django.test import override_settings

from acp_django import client as client_module
from acp_django.client import aget_client, get_client
from acp_integration.errors import AcpError, ConfigurationError
from acp_integration.types import Update

STDIO = {"transport": {"stdio": {"command": sys.executable, "args": ["-m", "acp_integration", "stdio"]}}}


def agent(name: str = "ProbeAgent") -> dict[str, Any]:
    """The settings of a client that starts an agent of the examples."""
    root = Path(__file__).resolve().parent.parent.parent
    arguments = [*STDIO["transport"]["stdio"]["args"], "--app-dir", str(root), f"examples.agents:{name}"]
    return {"transport": {"stdio": {"command": sys.executable, "args": arguments}}}


@pytest.fixture(autouse=True)
def configured() -> Iterator[None]:
    with override_settings(ACP={"client": agent(), "clients": {"tally": agent("TallyAgent")}}):
        yield


def test_sync_code_holds_a_turn() -> None:
    with pytest.raises(ConfigurationError, match=r"acp\.clients\.other"):
        get_client("other")
    session = get_client().new_session("/")
    assert session.prompt("hello").text == "echo: hello"


async def test_async_code_uses_the_same_connection() -> None:
    client = await aget_client()
    with anyio.fail_after(20):
        session = await client.new_session("/")
        assert (await session.prompt("hello")).text == "echo: hello"
    assert (await sync_to_async(get_client)()).async_client is client
    assert await aget_client() is client


async def test_each_alias_has_a_client_of_its_own() -> None:
    default, tally = await aget_client(), await aget_client("tally")
    assert default.agent_info is not None
    assert tally.agent_info is not None
    assert (default.agent_info.name, tally.agent_info.name) == ("probe", "tally")


def test_many_threads_share_one_client() -> None:
    found: list[Any] = []
    threads = [threading.Thread(target=lambda: found.append(get_client())) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    assert len(found) == 8
    assert len({id(client.async_client) for client in found}) == 1


def test_a_client_whose_agent_has_gone_is_replaced() -> None:
    first = get_client()
    first.close()
    second = get_client()
    assert second.async_client is not first.async_client
    assert second.new_session("/").prompt("hello").text == "echo: hello"


@override_settings(ACP={"client": {"transport": {"stdio": {"command": "/nowhere/agent"}}}})
def test_an_agent_that_cannot_be_started_is_told_each_time() -> None:
    for _ in range(2):
        with pytest.raises(AcpError, match="/nowhere/agent"):
            get_client()


said: list[str] = []


def remember(builder: Any) -> None:
    @builder.on_update
    def on_update(update: Update) -> None:
        said.append(update.text or "")


def test_customizers_add_handlers() -> None:
    said.clear()
    with override_settings(ACP={"client": agent(), "client-customizers": [remember]}):
        get_client().new_session("/").prompt("hello")
    assert said == ["echo: hello"]


def test_a_process_that_was_forked_makes_a_client_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    parent = get_client().async_client
    assert get_client().async_client is parent
    monkeypatch.setattr(os, "getpid", lambda: -1)
    child = get_client()
    assert child.async_client is not parent
    client_module._clients().close()


def test_an_agent_ends_with_the_process_that_used_it(run_python: Any, project: Path, tmp_path: Path) -> None:
    script = (
        "import os, sys; sys.path.insert(0, sys.argv[1]); import django; django.setup()\n"
        "from acp_django.client import get_client\n"
        "print(get_client().new_session('/').prompt('hello').text)"
    )
    done = run_python(
        *("-c", script, project),
        env={
            **os.environ,
            "DJANGO_SETTINGS_MODULE": "probe_project.settings",
            "PROBE_QUIET_SETTINGS": "1",
            "PROBE_ACP": json.dumps({"client": agent()}),
        },
    )
    assert done.returncode == 0, done.stderr
    assert "echo: hello" in done.stdout
