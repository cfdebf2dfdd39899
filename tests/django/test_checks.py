"""`manage.py check` says what would fail when the agent is served, each time with an id of its own."""

import os
import sys
from pathlib import Path
from typing import Any

import pytest
from django.core.checks import run_checks
from django.core.management import call_command
from django.core.management.base import SystemCheckError
from django.test import override_settings
from tickets import acp_agents

from acp_django import checks
from acp_django.serving import serving
from acp_integration import acp_agent, on
from acp_integration.agents import DECLARATION


def found(**settings: Any) -> dict[str, str]:
    """The ids of what is said under some settings, with the texts."""
    with override_settings(**settings):
        return {
            message.id: str(message.msg)
            for message in run_checks()
            if message.id is not None and message.id.startswith("acp_django.")
        }


def test_a_project_in_order_hears_nothing() -> None:
    assert found() == {}


@pytest.mark.parametrize(
    ("settings", "identifier", "words"),
    [
        ({"ACP": {"agent": {"request-timeuot": "3s"}}}, "E001", "did you mean"),
        ({"ACP": {"AGENT": {"REQUEST_TIMEOUT": "soon"}}}, "E001", "a duration"),
        ({"ACP": {"agnet": {"request-timeout": "3s"}}}, "E001", "did you mean acp.agent.request-timeout?"),
        (
            {"ACP": {"permision": "shop.rules.may"}},
            "E001",
            "acp.permision is not a known key; did you mean acp.permission",
        ),
        ({"ACP": {"SERVES": "shop.Agent"}}, "E001", "did you mean acp.serve?"),
        ({"ACP": {"client_customizer": "shop.x"}}, "E001", "did you mean acp.client-customizers?"),
        ({"ACP": {"client": {"transport": {"stdio": {"comand": "x"}}}}}, "E001", "acp.client.transport.stdio.command?"),
        (
            {"ACP": {"clients": {"a": {"transport": {"http": {"url": "x"}}}}}},
            "E001",
            "acp.clients.a.transport.http.uri?",
        ),
        ({"ACP": ["agent"]}, "E001", "not a dict"),
        ({"ACP": {"authentication": ["shop.auth.Nothing"]}}, "E002", "authentication"),
        ({"ACP": {"serve": "tickets.acp_agents.Nobody"}}, "E002", "serve"),
        ({"ACP": {"serve": "tickets.models.Ticket"}}, "E005", "@acp_agent"),
        ({"ASGI_APPLICATION": None}, "W001", "501"),
        ({"ASGI_APPLICATION": "tests.django.applications.plain"}, "W002", "acp_asgi"),
        ({"ACP": {"agent": {"transport": {"http": {"require-auth": "false"}}}}}, "W003", "require-auth"),
        ({"ALLOWED_HOSTS": ["*"]}, "W004", "ALLOWED_HOSTS"),
        ({"ACP": {"agent.transport.http.allowed-hosts": ["shop.example"]}}, "W005", "shop.example"),
        ({"ACP": {"agent.transport.http.allowed-origins": ["https://app.example"]}}, "W006", "https://app.example"),
    ],
)
def test_each_mistake_is_told(settings: Any, identifier: str, words: str) -> None:
    said = found(**settings)
    assert list(said) == [f"acp_django.{identifier}"]
    assert words in said[f"acp_django.{identifier}"]


def test_every_bad_key_is_told_at_once() -> None:
    written = {
        "agent": {"request-timeout": "soon", "sync-threads": "many"},
        "permision": "shop.rules.may",
        "client": {"prompt-timeout": "soon"},
        "clients": {"a": {"prompt-timeout": "soon"}},
        "agnet": {"request-timeout": "3s"},
    }
    with override_settings(ACP=written):
        assert len([message for message in run_checks() if message.id == "acp_django.E001"]) == 6


def test_sessions_in_memory_and_several_workers_do_not_go_together(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WEB_CONCURRENCY", "4")
    assert found() == {}
    assert list(found(ACP={"agent": {"session-store": "memory:"}})) == ["acp_django.W007"]


def test_a_version_of_the_sdk_that_is_not_supported_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checks, "version", lambda _: "0.9.0")
    assert list(found()) == ["acp_django.E003"]


@pytest.mark.parametrize("application", ["inside_channels", "around_channels"])
def test_a_wrapper_in_or_around_a_router_is_found(application: str) -> None:
    assert found(ASGI_APPLICATION=f"tests.django.applications.{application}") == {}


def test_several_agents_are_told_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(acp_agents, "Second", second_agent(acp_agents.__name__), raising=False)
    said = found(ACP={})
    assert "tickets.acp_agents.TicketAgent" in said["acp_django.E004"]


def second_agent(module: str) -> type:
    class Second:
        @on.prompt
        async def reply(self, turn: Any) -> str:
            return "never"

    Second.__module__ = module
    return acp_agent(name="second")(Second)


@pytest.fixture
def without_agents(monkeypatch: pytest.MonkeyPatch) -> None:
    """No installed app defines an agent any more."""
    monkeypatch.delattr(acp_agents, "TicketAgent")
    serving.cache_clear()


@pytest.mark.usefixtures("without_agents")
def test_an_agent_that_is_not_marked_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    unmarked = second_agent(acp_agents.__name__)
    delattr(unmarked, DECLARATION)
    monkeypatch.setattr(acp_agents, "Second", unmarked, raising=False)
    assert "mark with @acp_agent what is to be served: tickets.acp_agents." in found(ACP={})["acp_django.E005"]


@pytest.mark.usefixtures("without_agents")
def test_a_module_of_agents_outside_the_installed_apps_is_named(tmp_path: Path) -> None:
    for name in ("orders", "empty"):
        (tmp_path / name).mkdir()
    (tmp_path / "orders" / "acp_agents.py").touch()
    said = found(ACP={}, BASE_DIR=tmp_path)["acp_django.E005"]
    assert said.endswith("; not in INSTALLED_APPS, though with such a file: orders")


def test_errors_stop_the_check_command() -> None:
    with override_settings(ACP={"agent": {"request-timeuot": "3s"}}), pytest.raises(SystemCheckError):
        call_command("check")


@pytest.mark.parametrize(("command", "imported"), [("check", True), ("migrate", False), ("acp", True)])
def test_commands_that_serve_no_agent_do_not_import_it(
    monkeypatch: pytest.MonkeyPatch, project: Path, command: str, imported: Any
) -> None:
    monkeypatch.setattr(sys, "argv", [str(project / "manage.py"), command])
    said = found(ACP={"serve": "tickets.models.Ticket"})
    assert list(said) == (["acp_django.E005"] if imported else [])


def test_a_typo_in_the_settings_is_a_check_and_no_traceback(run_python, repo_root, tmp_path):
    written = 'from site_of_probe.settings import *\nACP = {"agent": {"requst-timeout": "30s"}}\n'
    (tmp_path / "mistyped.py").write_text(written)
    manage = repo_root / "tests" / "peers" / "django_probe" / "manage.py"
    environ = {**os.environ, "PYTHONPATH": str(tmp_path), "DJANGO_SETTINGS_MODULE": "mistyped"}
    ended = run_python(manage, "check", env=environ)
    assert ended.returncode == 1
    assert "acp_django.E001" in ended.stderr
    assert "did you mean acp.agent.request-timeout" in ended.stderr
    assert "Traceback" not in ended.stderr
