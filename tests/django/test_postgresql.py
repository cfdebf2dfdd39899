"""A database that counts its connections: however many turns there are, they never ask for one too many."""

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
        with psycopg.connect(host=str(postgresql), user="tester", dbname="postgres", autocommit=True) as observer:
            with anyio.fail_after(10):
                while others(observer):
                    await anyio.sleep(0.02)
            assert observer.execute("SELECT count(*) FROM tickets_ticket").fetchone() == (TURNS // 4,)


def others(observer: psycopg.Connection[Any]) -> int:
    """How many other clients are connected."""
    query = "SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()"
    row = observer.execute(query).fetchone()
    assert row is not None
    return int(row[0])
