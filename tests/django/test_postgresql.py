"""A database that counts its connections: however many turns there are, they never ask for one too many."""

import json
import os
import pwd
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import anyio
import psycopg
import pytest
import websockets

from tests.conformance.cells import until_up
from tests.runtime.raw_peer import process_peer

MAX_CONNECTIONS = 20
THREADS = 16
TURNS = 200


def binaries() -> Path | None:
    """The folder of PostgreSQL's programs, which Debian keeps out of the path."""
    found = shutil.which("pg_ctl")
    folders = [Path(found).resolve().parent] if found else sorted(Path("/usr/lib/postgresql").glob("*/bin"))
    return folders[-1] if folders else None


pytestmark = pytest.mark.skipif(binaries() is None, reason="PostgreSQL is not installed")


@pytest.fixture(scope="module")
def postgresql() -> Iterator[Path]:
    """A server of its own on a Unix socket; it refuses to run as root, so root starts it as another user."""
    folder = Path(tempfile.mkdtemp(prefix="acp-pg-"))
    user = "postgres" if os.getuid() == 0 else None
    if user is not None:
        shutil.chown(folder, user, pwd.getpwnam(user).pw_gid)
    programs, data = binaries(), folder / "data"
    settings = {"listen_addresses": "", "max_connections": MAX_CONNECTIONS, "fsync": "off"}
    words = " ".join(["-k", str(folder), *(f"-c {name}='{value}'" for name, value in settings.items())])

    def run(program: str, *arguments: str) -> None:
        command = [str(programs / program), "-D", str(data), *arguments]
        subprocess.run(command, check=True, timeout=60, user=user, cwd=folder, stdout=subprocess.DEVNULL)

    run("initdb", "-U", "tester", "-A", "trust", "--no-sync", "-E", "UTF8", "--locale=C")
    run("pg_ctl", "start", "-w", "-l", str(folder / "log"), "-o", words)
    yield folder
    run("pg_ctl", "stop", "-w", "-m", "immediate")
    shutil.rmtree(folder)


@pytest.fixture
def environment(postgresql: Path, project: Path) -> dict[str, str]:
    """The project on that server, with its tables."""
    environment = {**os.environ, "PROBE_POSTGRESQL": str(postgresql)}
    subprocess.run([sys.executable, project / "manage.py", "migrate", "-v0"], env=environment, check=True, timeout=60)
    return environment


async def test_more_turns_than_connections_wait_for_a_thread(
    open_process: Any, environment: dict[str, str], postgresql: Path, project: Path
) -> None:
    command = [sys.executable, "-m", "acp_django", "stdio", "--app-dir", str(project)]
    limits = {"ACP_AGENT_SYNC_THREADS": str(THREADS), "ACP_AGENT_MAX_CONCURRENT_REQUESTS": str(TURNS)}
    async with process_peer(open_process, command, env={**environment, **limits}) as peer:
        await peer.initialize()
        sessions = [await peer.new_session() for _ in range(TURNS)]
        words = ["create one", "count", "async", "slow 0.02"]
        prompts = [peer.prompt(session, words[number % 4]) for number, session in enumerate(sessions)]
        with anyio.fail_after(60):
            await peer.write(*prompts)
            answers = [await peer.answer(prompt) for prompt in prompts]
        assert [answer.get("error") for answer in answers] == [None] * TURNS
        with observed(postgresql) as observer:
            await none_left(observer)
            assert observer.execute("SELECT count(*) FROM tickets_ticket").fetchone() == (TURNS // 4,)


@pytest.fixture
def token(environment: dict[str, str], project: Path) -> str:
    """What a user of the project shows at the gate."""
    who = {
        "DJANGO_SUPERUSER_USERNAME": "ada",
        "DJANGO_SUPERUSER_PASSWORD": "secret",
        "DJANGO_SUPERUSER_EMAIL": "ada@shop.example",
    }

    def manage(*words: str) -> str:
        command = [sys.executable, project / "manage.py", *words]
        done = subprocess.run(command, env={**environment, **who}, check=True, timeout=60, stdout=subprocess.PIPE)
        return done.stdout.decode()

    manage("createsuperuser", "--noinput", "-v0")
    return manage("acp_token", "ada").split()[-1]


async def test_more_users_at_the_gate_than_connections_wait_for_it(
    open_process: Any,
    free_port: Any,
    environment: dict[str, str],
    postgresql: Path,
    project: Path,
    token: str,
) -> None:
    bounds = {"sync-threads": THREADS, "transport.http.max-connections-per-principal": TURNS}
    settings = json.dumps({"authentication": ["acp_django.auth.BearerToken"], "agent": bounds})
    port, answers = free_port(), list[list[str]]()
    command = [sys.executable, "-m", "uvicorn", "probe_project.asgi:application", "--port", str(port)]
    variables = {**environment, "PROBE_ACP": settings, "PROBE_QUIET_SETTINGS": "1"}
    server = await open_process(*command, cwd=project, env=variables, stdin=-3, stdout=-3, stderr=-3)
    await until_up(f"http://127.0.0.1:{port}/plain/")

    async def turn(number: int) -> None:
        url, headers = f"ws://127.0.0.1:{port}/acp", {"Authorization": f"Bearer {token}"}
        async with websockets.connect(url, additional_headers=headers, open_timeout=60) as socket:
            answers.append(await ask(socket, ["whoami", "slow 0.02"][number % 2]))

    with anyio.fail_after(120):
        async with anyio.create_task_group() as turns:
            for number in range(TURNS):
                turns.start_soon(turn, number)
    assert len(answers) == TURNS
    assert sorted({texts[-1] for texts in answers}) == ["ada", "slow"]
    assert server.returncode is None
    with observed(postgresql) as observer:
        await none_left(observer)


async def ask(socket: Any, text: str) -> list[str]:
    """Hold one turn on a new connection; the texts of its updates."""
    answer: dict[str, Any] = {}
    texts: list[str] = []

    async def call(method: str, **params: Any) -> dict[str, Any]:
        await socket.send(json.dumps({"jsonrpc": "2.0", "id": method, "method": method, "params": params}))
        while (frame := json.loads(await socket.recv())).get("id") != method:
            texts.append(frame["params"]["update"].get("content", {}).get("text", ""))
        answer.update(frame["result"])
        return answer

    await call("initialize", protocolVersion=1)
    session = (await call("session/new", cwd="/", mcpServers=[]))["sessionId"]
    await call("session/prompt", sessionId=session, prompt=[{"type": "text", "text": text}])
    return texts


def observed(postgresql: Path) -> psycopg.Connection[Any]:
    """A connection of our own to the server."""
    return psycopg.connect(host=str(postgresql), user="tester", dbname="postgres", autocommit=True)


async def none_left(observer: psycopg.Connection[Any]) -> None:
    """Wait until nobody else is connected."""
    with anyio.fail_after(10):
        while others(observer):
            await anyio.sleep(0.02)


def others(observer: psycopg.Connection[Any]) -> int:
    """How many other clients are connected."""
    query = "SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()"
    row = observer.execute(query).fetchone()
    assert row is not None
    return int(row[0])
