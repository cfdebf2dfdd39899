"""The example project is real: its agent works on the site's tickets, for the user who is logged in."""

import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio
import httpx2
import pytest

from tests.django.test_servers import Site, answering
from tests.runtime.raw_peer import RawPeer, process_peer, text_of

USER = """
from django.contrib.auth.models import User
User.objects.create_user("ada", password="lovelace")
"""


@pytest.fixture
def example(repo_root: Path) -> Path:
    return repo_root / "examples" / "django_project"


@pytest.fixture
def environment(tmp_path: Path, example: Path, run_python: Callable[..., Any]) -> dict[str, str]:
    """The example with a database of its own, in which ada is a user."""
    environment = {name: value for name, value in os.environ.items() if name != "DJANGO_SETTINGS_MODULE"}
    environment |= {"DATABASE": str(tmp_path / "db.sqlite3")}
    for arguments in (["migrate", "-v0"], ["shell", "-v0", "-c", USER]):
        done = run_python(example / "manage.py", *arguments, env=environment)
        assert done.returncode == 0, done.stderr
    return environment


def test_the_example_passes_its_checks(run_python: Any, example: Path, environment: dict[str, str]) -> None:
    for arguments in (["check", "--fail-level", "WARNING"], ["makemigrations", "--check"]):
        done = run_python(example / "manage.py", *arguments, env=environment)
        assert done.returncode == 0, done.stdout + done.stderr


async def test_its_agent_opens_answers_and_closes_tickets(
    open_process: Any, example: Path, environment: dict[str, str], tmp_path: Path
) -> None:
    command = [sys.executable, "-P", "-m", "acp_django", "stdio", "--app-dir", str(example), "--user", "ada"]
    async with process_peer(open_process, command, env=environment, cwd=tmp_path) as peer:
        await peer.initialize()
        session = await peer.new_session()
        assert await said(peer, session, "open The printer is on fire") == "Opened #1 The printer is on fire (open)"
        assert await said(peer, session, "answer 1 Use water") == "Answered #1 The printer is on fire (answered)"
        assert await said(peer, session, "answer 7 Use water") == "There is no ticket 7"
        assert await said(peer, session, "list") == "#1 The printer is on fire (answered)\n1 not closed"
        assert await said(peer, session, "close 1", option="reject") == "Kept #1 The printer is on fire (answered)"
        assert await said(peer, session, "close 1", option="allow") == "Closed #1"
        assert "open TITLE" in await said(peer, session, "help")


async def said(peer: RawPeer, session: str, text: str, option: str | None = None) -> str:
    """All that the agent says in one turn, in which it may ask for a permission."""
    before, prompt = len(peer.log), peer.prompt(session, text)
    await peer.write(prompt)
    if option is not None:
        asked = await peer.seen(
            lambda frame: frame.get("method") == "session/request_permission" and frame in peer.log[before:]
        )
        outcome = {"outcome": {"outcome": "selected", "optionId": option}}
        await peer.write({"jsonrpc": "2.0", "id": asked["id"], "result": outcome})
    answer = await peer.answer(prompt)
    assert answer["result"]["stopReason"] == "end_turn", answer
    return "".join(text_of(frame) or "" for frame in peer.log[before:])


async def test_a_watching_turn_ends_when_it_is_cancelled(
    open_process: Any, example: Path, environment: dict[str, str]
) -> None:
    command = [sys.executable, str(example / "manage.py"), "acp_stdio"]
    async with process_peer(open_process, command, env=environment) as peer:
        await peer.initialize()
        session = await peer.new_session()
        prompt = peer.prompt(session, "watch")
        await peer.write(prompt)
        await peer.says("Watching the tickets, cancel to stop\n")
        await peer.write(peer.cancel(session))
        assert (await peer.answer(prompt))["result"]["stopReason"] == "cancelled"


async def test_its_site_serves_people_and_programs(
    open_process: Any,
    run_python: Any,
    free_port: Callable[[], int],
    example: Path,
    environment: dict[str, str],
    tmp_path: Path,
) -> None:
    token = run_python(example / "manage.py", "acp_token", "ada", env=environment).stdout.strip()
    port, log = free_port(), tmp_path / "log"
    command = ["-m", "uvicorn", "project.asgi:application", "--port", str(port), "--log-level", "warning"]
    with log.open("wb") as output:
        process = await open_process(
            sys.executable, *command, cwd=example, env=environment, stdin=-3, stdout=output, stderr=output
        )
    async with httpx2.AsyncClient(base_url=f"http://127.0.0.1:{port}", timeout=20) as http:
        await answering(Site(process, port, log, http), "/login/", "password")
        page = await http.get("/")
        assert (page.status_code, page.headers["location"]) == (302, "/login/?next=/")
        form = {"username": "ada", "password": "lovelace", "csrfmiddlewaretoken": http.cookies["csrftoken"]}
        assert (await http.post("/login/", data=form)).status_code == 302
        assert "None yet" in (await http.get("/")).text
        request = {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {"protocolVersion": 1}}
        by_cookie = await http.post("/acp", json=request)
        assert by_cookie.json()["result"]["agentInfo"]["name"] == "helpdesk"
        evil = await http.post("/acp", json=request, headers={"origin": "https://evil.example"})
        assert evil.status_code == 403
        http.cookies.clear()
        headers = {"authorization": f"Bearer {token}"}
        by_token = await http.post(
            "/acp", content=json.dumps(request), headers={**headers, "content-type": "application/json"}
        )
        assert by_token.status_code == 200
        stolen = {**headers, "acp-connection-id": by_cookie.headers["acp-connection-id"]}
        assert (await http.delete("/acp", headers=stolen)).status_code == 202, "the same user, however they prove it"
    process.terminate()
    with anyio.fail_after(20):
        await process.wait()
    assert "Traceback" not in log.read_text()
