import json
import os
import sys
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User

from tests.runtime.raw_peer import RawPeer, process_peer

Connect = Callable[..., AbstractAsyncContextManager[RawPeer]]

COMMANDS = {
    "module": ("-P", "-m", "acp_django", "stdio", "--app-dir", "{project}"),
    "management": ("{project}/manage.py", "acp_stdio"),
}
INITIALIZE = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"protocolVersion": 1}}


@pytest.fixture
def environment(database: Path) -> dict[str, str]:
    """A project's environment that names no settings: the commands find those of manage.py."""
    unset = {"DJANGO_SETTINGS_MODULE", "PYTHONUNBUFFERED"}
    return {name: value for name, value in os.environ.items() if name not in unset}


@pytest.fixture(params=COMMANDS)
def command(request, project: Path) -> list[str]:
    return [sys.executable, *(word.format(project=project) for word in COMMANDS[request.param])]


@pytest.fixture
def connect(open_process, command, environment, tmp_path) -> Connect:
    """Start the command in a folder that has nothing to do with the project."""

    def start(*arguments: str, **variables: str) -> AbstractAsyncContextManager[RawPeer]:
        options: dict[str, Any] = {"cwd": tmp_path, "env": {**environment, **variables}}
        return process_peer(open_process, [*command, *arguments], **options)

    return start


async def test_a_sync_handler_uses_the_orm(connect: Connect) -> None:
    async with connect() as peer:
        assert (await peer.initialize())["result"]["agentInfo"]["name"] == "tickets"
        session = await peer.new_session()
        for text, answer in (("create one", "created one"), ("count", "1 tickets"), ("async", "1 tickets")):
            done = await peer.answer(await sent(peer, session, text))
            assert done["result"]["stopReason"] == "end_turn"
            assert answer in peer.texts(session)


async def sent(peer: RawPeer, session: str, text: str) -> dict[str, Any]:
    request = peer.prompt(session, text)
    await peer.write(request)
    return request


async def test_nothing_but_frames_is_written_to_standard_output(run_command, command, environment) -> None:
    lines = [INITIALIZE, {"jsonrpc": "2.0", "id": 2, "method": "session/new", "params": {"cwd": "/", "mcpServers": []}}]
    done = run_command(
        *command, "--verbosity", "3", stdin="".join(json.dumps(line) + "\n" for line in lines), env=environment
    )
    assert done.returncode == 0, done.stderr
    assert [json.loads(line)["id"] for line in done.stdout.splitlines()] == [1, 2]
    assert done.stdout.endswith("}\n")
    assert "printed while the settings are imported" in done.stderr


async def test_what_a_handler_prints_in_any_way_lands_beside_the_log(connect: Connect) -> None:
    async with connect() as peer:
        await peer.initialize()
        session = await peer.new_session()
        await peer.answer(await sent(peer, session, "noise"))
        assert peer.texts(session) == ["noisy"]


def test_a_management_command_guards_standard_output_before_a_model_is_imported(
    run_command, project, environment
) -> None:
    command = [word.format(project=project) for word in COMMANDS["management"]]
    environment = {**environment, "PYTHONUNBUFFERED": "1", "PROBE_QUIET_SETTINGS": "1"}
    done = run_command(sys.executable, *command, stdin=json.dumps(INITIALIZE) + "\n", env=environment)
    assert [json.loads(line)["id"] for line in done.stdout.splitlines()] == [1], done.stderr


def test_the_module_guards_standard_output_before_the_settings_are_imported(run_command, project, environment) -> None:
    command = [word.format(project=project) for word in COMMANDS["module"]]
    stdin = json.dumps(INITIALIZE) + "\n"
    done = run_command(sys.executable, *command, stdin=stdin, env={**environment, "PYTHONUNBUFFERED": "1"})
    assert [json.loads(line)["id"] for line in done.stdout.splitlines()] == [1]


async def test_the_agent_acts_for_the_user_that_is_named(connect: Connect) -> None:
    await User.objects.acreate(username="ada")
    async with connect("--user", "ada") as peer:
        await peer.initialize()
        session = await peer.new_session()
        await peer.answer(await sent(peer, session, "whoami"))
        assert peer.texts(session) == ["ada"]


@pytest.mark.parametrize(
    ("arguments", "variables", "words"),
    [
        (["--user", "nobody"], {}, "There is no user 'nobody'"),
        ([], {"PROBE_ACP": '{"agent": {"request-timeuot": "3s"}}'}, "acp.agent.request-timeout"),
        ([], {"PROBE_ACP": '{"agent": {"transport": {"type": "http"}}}'}, "acp.agent.transport.type"),
        ([], {"RUN_MAIN": "true"}, "autoreloader"),
    ],
)
def test_a_start_that_cannot_work_says_why_and_fails(
    run_command, command, environment, arguments, variables, words
) -> None:
    done = run_command(*command, *arguments, env={**environment, **variables})
    assert (done.returncode, done.stdout) == (2, "")
    assert words in done.stderr
    assert "Traceback" not in done.stderr


def test_what_is_served_is_listed_for_people_and_programs(run_python, project, environment) -> None:
    manage = (project / "manage.py", "acp", "inspect")
    listed = run_python(*manage, "--json", env=environment).stdout
    found = json.loads(listed[listed.index("{") :])
    assert found["agent"]["class"] == "tickets.acp_agents.TicketAgent"
    assert "session/prompt" in [handler["method"] for handler in found["handlers"]]
    assert "tickets.acp_agents.TicketAgent" in run_python(*manage, env=environment).stdout


async def test_a_trace_holds_every_frame(connect: Connect, tmp_path: Path) -> None:
    async with connect("--trace", str(tmp_path / "trace")) as peer:
        await peer.initialize()
        await peer.end_input()
        await peer.ended.wait()
    assert '"initialize"' in (tmp_path / "trace").read_text()


SLOW = {
    "module": ("slow_settings.py", "from probe_project.settings import *\nopen({gate!r}).close()\n"),
    "management": ("slow_app/models.py", "open({gate!r}).close()\n"),
}


@pytest.mark.parametrize(
    ("kind", "name"), [("module", "python -m acp_django"), ("management", "{project}/manage.py acp_stdio")]
)
def test_a_project_that_loads_slowly_is_said_while_it_lasts(
    spawn, project: Path, environment, tmp_path: Path, kind: str, name: str
) -> None:
    gate, (file, content) = tmp_path / "gate", SLOW[kind]
    os.mkfifo(gate)
    (tmp_path / "slow_app").mkdir()
    (tmp_path / "slow_app" / "__init__.py").touch()
    (tmp_path / "slow_settings.py").write_text(
        "from probe_project.settings import *\nINSTALLED_APPS = [*INSTALLED_APPS, 'slow_app']\n"
    )
    (tmp_path / file).write_text(content.format(gate=str(gate)))
    environ = {**environment, "PYTHONPATH": str(tmp_path), "PROBE_QUIET_SETTINGS": "1"}
    words = [word.format(project=project) for word in COMMANDS[kind]]
    process = spawn(sys.executable, *words, "--settings", "slow_settings", env=environ)
    said = name.format(project=project) + ": still loading the project's settings and apps after 2 s"
    assert any(line.startswith(said.encode()) for line in iter(process.stderr.readline, b""))
    gate.open("w").close()
    out, err = process.communicate(timeout=30)
    assert (out, process.returncode) == (b"", 0)
    assert b"loaded the project's settings and apps after " in err
