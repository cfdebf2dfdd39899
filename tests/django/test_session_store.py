"""Sessions in the project's own database: the rules of every store, owners, retention, and pages that show them."""

import json
import os
import random
import sys
from collections.abc import Callable, Iterator
from datetime import timedelta
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from django.apps import apps
from django.contrib import admin
from django.core.management import CommandError, call_command
from django.db import connections
from django.test import Client, modify_settings, override_settings
from django.urls import clear_url_caches, path
from django.utils import timezone

from acp_django.sessions.store import django_store
from acp_integration.errors import ConfigurationError
from acp_integration.store import DurableStore
from tests.django.test_postgresql import binaries, postgresql  # noqa: F401  # a fixture
from tests.store.conftest import connect, killable_peer  # noqa: F401  # a fixture
from tests.store.test_kills import (  # noqa: F401  # tests that run here on this store
    check_kills,
    test_an_agent_that_was_killed_remembers_what_was_said_and_counts_on,
    test_two_processes_share_a_file_and_the_latest_load_holds_the_session,
)
from tests.store.test_rules import (  # noqa: F401  # tests that run here on this store
    started,
    test_a_list_is_paged_newest_first_and_by_directory,
    test_a_load_replays_prompts_and_updates_merged_and_in_order_before_its_answer,
    test_a_state_that_is_no_json_fails_its_turn_and_no_other,
    test_a_turn_of_a_session_that_is_opened_elsewhere_is_cancelled_and_says_no_more,
    test_delete_is_a_success_again_and_again_and_ends_what_was_open,
    test_history_and_state_come_back,
    test_loading_again_on_the_same_connection_ends_the_turn_first,
    test_modes_and_options_come_back,
    test_nobody_sees_loads_resumes_or_deletes_anothers_session,
    test_nothing_leaves_behind_an_answer_that_was_forced,
    test_the_latest_load_holds_a_session,
    test_what_was_said_before_a_question_arrives_before_it,
)

PROJECT = Path(__file__).resolve().parent / "sessions_project"
APPS = {"append": ["django.contrib.admin", "django.contrib.messages", "acp_django.sessions"]}
MESSAGES = {"append": ["django.contrib.messages.middleware.MessageMiddleware"]}
TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
            ]
        },
    }
]
urlpatterns: list[Any] = []
"""Filled when the admin is installed."""


@pytest.fixture(scope="module")
def apps_with_sessions(tables: Path) -> Iterator[None]:
    """The app with its tables, and Django's admin, while the tests of this module run."""
    with (
        modify_settings(INSTALLED_APPS=APPS, MIDDLEWARE=MESSAGES),
        override_settings(TEMPLATES=TEMPLATES, ROOT_URLCONF=__name__),
    ):
        call_command("migrate", verbosity=0)
        urlpatterns[:] = [path("admin/", admin.site.urls)]
        clear_url_caches()
        yield


@pytest.fixture
def installed(apps_with_sessions: None) -> Iterator[None]:
    """No session and no user is left by a test."""
    yield
    for label, name in (("acp_sessions", "Session"), ("auth", "User"), ("sessions", "Session")):
        apps.get_model(label, name).objects.all().delete()
    connections.close_all()


@pytest.fixture
def store(installed: None) -> Iterator[DurableStore]:
    store = DurableStore(import_module("acp_django.sessions.tables").OrmTables(), page_size=2)
    yield store
    store._thread._pool.submit(connections.close_all).result(10)


@pytest.fixture
def process_on(open_process: Any, run_python: Callable[..., Any], repo_root: Path) -> Callable[..., Any]:
    """`process_on(NAME=value)` gives what starts the agent of a project in a process with these variables."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("DJANGO_", "PROBE_"))}
    command = [sys.executable, "-m", "acp_django", "stdio", "--app-dir", str(PROJECT)]

    def on(**variables: str) -> Callable[[], Any]:
        environ = {**clean, **variables}
        done = run_python(PROJECT / "manage.py", "migrate", "-v0", env=environ, cwd=repo_root)
        assert done.returncode == 0, done.stderr
        return lambda: killable_peer(open_process, command, env=environ, cwd=repo_root)

    return on


@pytest.fixture
def process(process_on: Callable[..., Any], tmp_path: Path) -> Any:
    """`async with process() as peer` is the agent in a process of its own, on one database file each time."""
    return process_on(DATABASE=str(tmp_path / "db.sqlite3"))


@pytest.mark.skipif(binaries() is None, reason="PostgreSQL is not installed")
async def test_postgresql_keeps_sessions_too(postgresql: Path, process_on: Callable[..., Any]):  # noqa: F811  # the fixture
    await check_kills(process_on(PROBE_POSTGRESQL=str(postgresql)), 2, random.Random(3))


async def test_killed_turns_come_back(process: Callable[..., Any]):
    await check_kills(process, 3, random.Random(2))


@pytest.mark.full
async def test_a_hundred_killed_turns_come_back(process: Callable[..., Any]):
    await check_kills(process, 100, random.Random())


def test_the_store_needs_its_app(installed: None):
    with (
        modify_settings(INSTALLED_APPS={"remove": ["acp_django.sessions"]}),
        pytest.raises(ConfigurationError, match=r"'acp_django.sessions' in INSTALLED_APPS"),
    ):
        django_store()


def test_the_migrations_are_those_of_the_models(installed: None):
    call_command("makemigrations", "acp_sessions", check=True, dry_run=True, verbosity=0)


@pytest.fixture
def sessions(installed: None) -> Any:
    """Makes sessions of an age, each with one message."""
    objects = apps.get_model("acp_sessions", "Session").objects

    def make(name: str, days: int, owner: str | None = None, message: str = '{"sessionUpdate":"x"}') -> Any:
        then = timezone.now() - timedelta(days=days)
        session = objects.create(id=name, owner=owner, cwd="/", created_at=then, updated_at=then)
        session.entries.create(number=0, kind="update", update=message)
        return session

    make.objects = objects  # type: ignore[attr-defined]
    return make


def test_retention_forgets_what_is_old_with_all_that_was_said(sessions: Any, capsys: pytest.CaptureFixture[str]):
    for name, days, owner in (("new", 1, "ada"), ("old", 40, "ada"), ("bobs", 40, "bob")):
        sessions(name, days, owner)
    call_command("acp_prune_sessions", days=30, dry_run=True)
    assert sessions.objects.count() == 3
    call_command("acp_prune_sessions", days=30, owner="ada")
    assert {session.id for session in sessions.objects.all()} == {"new", "bobs"}
    call_command("acp_prune_sessions", days=30)
    assert [session.id for session in sessions.objects.all()] == ["new"]
    assert sessions.objects.get().entries.count() == 1
    assert capsys.readouterr().out.splitlines() == [
        "2 sessions would be deleted",
        "1 sessions deleted",
        "1 sessions deleted",
    ]
    with pytest.raises(CommandError, match="negative"):
        call_command("acp_prune_sessions", days=-1)


@pytest.fixture
def browser(installed: None) -> Client:
    """A member of the staff, logged in."""
    client = Client()
    client.force_login(apps.get_model("auth", "User").objects.create_superuser("root", password="root"))
    return client


EVIL = "<script>alert(1)</script>"
SAID = [
    {"sessionUpdate": "user_message_chunk", "content": {"type": "text", "text": f"hello {EVIL}"}},
    {"sessionUpdate": "agent_thought_chunk", "content": {"type": "text", "text": "hm"}},
    {"sessionUpdate": "tool_call", "toolCallId": EVIL, "title": f"Read {EVIL}", "status": "pending"},
    {"sessionUpdate": "plan", "entries": [{"content": "think", "status": "pending", "priority": "low"}]},
    {"sessionUpdate": EVIL, "more": EVIL},
    {"sessionUpdate": "agent_message_chunk", "content": {"type": "image", "data": "A" * 5000, "mimeType": EVIL}},
    {"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": f"bye {EVIL}"}},
]


def test_the_page_of_a_conversation_shows_it_and_escapes_what_was_said(sessions: Any, browser: Client):
    session = sessions("one", 0, "ada")
    session.title = f"Title {EVIL}"
    session.save()
    for number, update in enumerate(SAID, 1):
        fields = {"number": number, "kind": "update", "update": json.dumps(update), "cut": number == len(SAID)}
        session.entries.create(**fields)
    listed = browser.get("/admin/acp_sessions/session/")
    shown = browser.get(f"/admin/acp_sessions/session/{session.pk}/change/")
    for page in (listed.content.decode(), shown.content.decode()):
        assert "Title &lt;script&gt;" in page
        assert EVIL not in page
    page = shown.content.decode()
    order = [page.index(text) for text in ("hello &lt;script", "hm", "Read &lt;script", "pending: think", "bye &lt;")]
    assert order == sorted(order)
    assert "A" * 2001 not in page
    assert page.count("The turn was cut off here.") == 1


def test_the_pages_change_nothing(sessions: Any, browser: Client):
    session = sessions("one", 0)
    assert browser.get("/admin/acp_sessions/session/add/").status_code == 403
    assert browser.post(f"/admin/acp_sessions/session/{session.pk}/change/", {"title": "x"}).status_code == 403
    assert browser.post(f"/admin/acp_sessions/session/{session.pk}/delete/", {"post": "yes"}).status_code == 302
    assert not sessions.objects.exists()
