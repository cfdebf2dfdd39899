"""Each server, as a process of its own: it serves a turn, and with streams, sockets and a turn open it ends in time."""

import json
import signal
import sys
import time
from contextlib import asynccontextmanager

import anyio
import httpx2
import pytest
from websockets.asyncio.client import connect
from websockets.exceptions import ConnectionClosed

from tests.endpoint.driver import INITIALIZE, events_in, ids, prompt, request

APP = "tests.endpoint.served_app:app"

SERVERS = {
    "uvicorn": ["uvicorn", APP, "--port", "{port}"],
    "uvicorn-uvloop": ["uvicorn", APP, "--port", "{port}", "--loop", "uvloop"],
    "uvicorn-no-lifespan": ["uvicorn", APP, "--port", "{port}", "--lifespan", "off"],
    "uvicorn-workers": ["uvicorn", APP, "--port", "{port}", "--workers", "1", "--timeout-worker-healthcheck", "60"],
    "uvicorn-reload": ["uvicorn", APP, "--port", "{port}", "--reload", "--reload-dir", "{folder}"],
    "hypercorn": ["hypercorn", APP, "--bind", "127.0.0.1:{port}"],
    "hypercorn-one-process": ["hypercorn", APP, "--bind", "127.0.0.1:{port}", "--workers", "0"],
    "granian": ["granian", "--interface", "asgi", "--port", "{port}", APP],
    "daphne": ["daphne", "-p", "{port}", APP],
}
CUT_BY_THE_SERVER = {"daphne"}
"""It cancels the application at once, and does not wait for what it would still say."""
CLOSE_CODES = {1001, 1012}
"""Ours, and the one with which uvicorn closes a socket that it is first to."""
UNCLEAN = ("Traceback", "ERROR", "CancelledError", "never retrieved", "was destroyed")


@pytest.fixture(params=SERVERS)
async def server(request, open_process, free_port, repo_root, tmp_path):
    port = free_port()
    command = [part.format(port=port, folder=tmp_path) for part in SERVERS[request.param]]
    log = tmp_path / "log"
    with log.open("wb") as output:
        process = await open_process(sys.executable, "-m", *command, cwd=repo_root, stdout=output, stderr=output)
    async with httpx2.AsyncClient(base_url=f"http://127.0.0.1:{port}", timeout=20) as http:
        with anyio.fail_after(30):
            while not await is_up(http):
                assert process.returncode is None, log.read_text()
                await anyio.sleep(0.05)
        yield process, http, port, log, request.param


async def is_up(http):
    try:
        return (await http.get("/acp/health")).status_code == 200
    except httpx2.TransportError:
        return False


class Reading:
    """An event stream that is read in a task of its own."""

    def __init__(self):
        self.body = b""
        self.connected, self.ended = anyio.Event(), anyio.Event()
        self.cut = False

    async def run(self, http, headers):
        try:
            async with http.stream("GET", "/acp", headers={"accept": "text/event-stream", **headers}) as stream:
                assert stream.status_code == 200
                async for chunk in stream.aiter_raw():
                    self.body += chunk
                    self.connected.set()
        except httpx2.TransportError:
            self.cut = True
        self.ended.set()

    @property
    def events(self):
        return [message for _, message in events_in(self.body[: self.body.rfind(b"\n\n") + 2])]


@asynccontextmanager
async def reading(http, connection, session=None):
    async with anyio.create_task_group() as tasks:
        stream = Reading()
        tasks.start_soon(stream.run, http, ids(connection, session))
        with anyio.fail_after(10):
            await stream.connected.wait()
        yield stream
        tasks.cancel_scope.cancel()


async def closing(socket):
    """The code with which a socket is closed, None if it is only cut."""
    try:
        while True:
            await socket.recv()
    except ConnectionClosed as closed:
        return closed.rcvd and closed.rcvd.code


async def until(reached):
    with anyio.fail_after(10):
        while not reached():
            await anyio.sleep(0.01)


async def test_a_server_serves_a_turn_and_ends_in_time_with_everything_open(server):
    process, http, port, log, name = server
    connection = (await http.post("/acp", json=INITIALIZE)).headers["acp-connection-id"]
    async with reading(http, connection) as own, connect(f"ws://127.0.0.1:{port}/acp") as socket:
        await http.post("/acp", json=request("session/new", 1, cwd="/", mcpServers=[]), headers=ids(connection, None))
        await until(lambda: own.events)
        session = own.events[0]["result"]["sessionId"]
        async with reading(http, connection, session) as stream:
            await http.post("/acp", json=prompt(session, "stream:20", 2), headers=ids(connection, session))
            await until(lambda: len(stream.events) == 21)
            await socket.send(json.dumps(INITIALIZE))
            assert json.loads(await socket.recv())["result"]["protocolVersion"] == 1
            await http.post("/acp", json=prompt(session, "finally", 3), headers=ids(connection, session))
            await until(lambda: len(stream.events) == 22)

            began = time.monotonic()
            process.send_signal(signal.SIGTERM)
            with anyio.fail_after(10):
                code = await process.wait()
                lasted = time.monotonic() - began
                await stream.ended.wait()
                await own.ended.wait()
                close_code = await closing(socket)
    assert lasted < 3
    assert code in (0, -signal.SIGTERM, 128 + signal.SIGTERM)
    assert not [line for line in log.read_text().splitlines() if any(word in line for word in UNCLEAN)], log.read_text()
    if name not in CUT_BY_THE_SERVER:
        assert stream.body.endswith(b": shutting down\n\n")
        assert not stream.cut
        assert stream.events[-1] == {"jsonrpc": "2.0", "id": 3, "result": {"stopReason": "cancelled"}}
        assert name == "granian" or close_code in CLOSE_CODES  # granian drops its sockets without a code
