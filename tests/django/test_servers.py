"""The wrapper under the servers that projects use: both transports, one database, a clean end."""

import json
import os
import signal
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import anyio
import httpx2
import pytest
import websockets
from tickets.meeting import TURNS

from tests.django.asgi_driver import INITIALIZE

SERVERS = {
    "uvicorn": ["-m", "uvicorn", "probe_project.asgi:application", "--port", "{port}", "--log-level", "warning"],
    "hypercorn": ["-m", "hypercorn", "probe_project.asgi:application", "--bind", "127.0.0.1:{port}"],
    "granian": ["-m", "granian", "probe_project.asgi:application", "--interface", "asgi", "--port", "{port}"],
    "daphne": ["-m", "daphne", "probe_project.asgi:application", "-p", "{port}", "-b", "127.0.0.1"],
    "runserver": ["manage.py", "runserver", "127.0.0.1:{port}", "--noreload"],
}
PING = {"jsonrpc": "2.0", "id": 1, "method": "session/new", "params": {"cwd": "/", "mcpServers": []}}


@dataclass
class Site:
    """A project on a real server."""

    process: Any
    port: int
    log: Path
    http: httpx2.AsyncClient


@pytest.fixture
async def serve(
    open_process: Any, free_port: Callable[[], int], project: Path, database: Path, tmp_path: Path
) -> AsyncIterator[Callable[..., Any]]:
    """``await serve("uvicorn", VARIABLE=...)`` gives the site once it answers."""
    async with AsyncExitStack() as stack:

        async def start(name: str, **variables: str) -> Site:
            port, log = free_port(), tmp_path / "log"
            command = [word.format(port=port) for word in SERVERS[name]]
            with log.open("wb") as output:
                process = await open_process(
                    sys.executable,
                    *command,
                    cwd=project,
                    env={**os.environ, **variables},
                    stdin=-3,
                    stdout=output,
                    stderr=output,
                )
            http = httpx2.AsyncClient(base_url=f"http://127.0.0.1:{port}", timeout=20)
            site = Site(process, port, log, await stack.enter_async_context(http))
            await answering(site)
            return site

        yield start


async def answering(site: Site, path: str = "/plain/", text: str = "a plain view") -> None:
    with anyio.fail_after(30):
        while True:
            assert site.process.returncode is None, site.log.read_text()
            try:
                answer = await site.http.get(path)
            except httpx2.TransportError:
                await anyio.sleep(0.05)
            else:
                assert text in answer.text
                return


@asynccontextmanager
async def event_stream(site: Site, connection: str) -> AsyncIterator[AsyncIterator[str]]:
    headers = {"accept": "text/event-stream", "acp-connection-id": connection}
    async with site.http.stream("GET", "/acp", headers=headers) as response:
        assert response.status_code == 200
        yield response.aiter_lines()


async def connect(site: Site) -> str:
    answer = await site.http.post("/acp", json=INITIALIZE)
    assert answer.status_code == 200, answer.text
    return str(answer.headers["acp-connection-id"])


async def until(lines: AsyncIterator[str], word: str) -> None:
    with anyio.fail_after(10):
        async for line in lines:
            if word in line:
                return
    raise AssertionError("the stream ended")


@pytest.mark.parametrize("server", SERVERS)
async def test_both_transports_are_served_and_end_with_the_server(serve: Any, server: str) -> None:
    variables = {"DJANGO_SETTINGS_MODULE": "probe_project.with_daphne"} if server == "runserver" else {}
    site = await serve(server, **variables)
    connection = await connect(site)
    async with event_stream(site, connection) as lines:
        await until(lines, "connected")
        answer = await site.http.post("/acp/", json=PING, headers={"acp-connection-id": connection})
        assert answer.status_code == 202
        await until(lines, "sessionId")
        async with websockets.connect(f"ws://127.0.0.1:{site.port}/acp") as socket:
            await socket.send(json.dumps(INITIALIZE))
            assert "tickets" in str(await socket.recv())
            site.process.send_signal(signal.SIGTERM)
            with anyio.fail_after(20):
                await site.process.wait()
    assert "Traceback" not in site.log.read_text(), site.log.read_text()


async def test_eight_sync_turns_and_a_normal_view_are_inside_at_the_same_time(serve: Any) -> None:
    site = await serve("uvicorn")
    answers: dict[int, Any] = {}
    with anyio.fail_after(20):
        async with websockets.connect(f"ws://127.0.0.1:{site.port}/acp") as socket:

            async def answer_to(number: int) -> Any:
                while number not in answers:
                    frame = json.loads(await socket.recv())
                    if "method" not in frame:
                        answers[frame["id"]] = frame["result"]
                return answers[number]

            await socket.send(json.dumps(INITIALIZE))
            for number in range(1, TURNS + 1):
                await socket.send(json.dumps({**PING, "id": number}))
                session = (await answer_to(number))["sessionId"]
                params = {"sessionId": session, "prompt": [{"type": "text", "text": "meet"}]}
                prompt = {"jsonrpc": "2.0", "id": -number, "method": "session/prompt", "params": params}
                await socket.send(json.dumps(prompt))
            # The last who is waited for: the view is answered only if all turns are inside, and they only if it is.
            assert (await site.http.get("/meet/")).text == "met"
            for number in range(1, TURNS + 1):
                assert (await answer_to(-number))["stopReason"] == "end_turn"


async def test_under_wsgi_the_development_server_says_what_is_missing(serve: Any) -> None:
    site = await serve("runserver")
    answer = await site.http.post("/acp", json=INITIALIZE)
    assert answer.status_code == 501
    assert "ASGI" in answer.json()["error"]
    site.process.send_signal(signal.SIGTERM)
    with anyio.fail_after(20):
        await site.process.wait()
