"""Behind nginx as Debian ships it, with its default buffering and an idle limit of two seconds."""

import shutil
import subprocess
import time

import anyio
import httpx2
import pytest

from tests.endpoint.driver import INITIALIZE, events_in, ids, prompt, request

NGINX = shutil.which("nginx", path="/usr/sbin:/usr/bin:/usr/local/sbin:/usr/local/bin")
CONFIG = """
daemon off;
worker_processes 1;
pid {folder}/pid;
error_log {folder}/error.log;
events {{ worker_connections 200; }}
http {{
    access_log off;
    client_body_temp_path {folder}/body;
    proxy_temp_path {folder}/proxy;
    fastcgi_temp_path {folder}/fastcgi;
    uwsgi_temp_path {folder}/uwsgi;
    scgi_temp_path {folder}/scgi;
    server {{
        listen 127.0.0.1:{port};
        location / {{
            proxy_pass http://127.0.0.1:{upstream};
            proxy_read_timeout 2s;
            proxy_send_timeout 2s;
        }}
    }}
}}
"""

pytestmark = pytest.mark.skipif(NGINX is None, reason="nginx is not installed: .ci/run installs it")


@pytest.fixture
async def behind_nginx(serve, open_process, free_port, tmp_path):
    """A client that talks to nginx, and nginx to the endpoint."""
    site = await serve(keep_alive_interval=0.5)
    port, config = free_port(), tmp_path / "nginx.conf"
    config.write_text(CONFIG.format(folder=tmp_path, port=port, upstream=site.port))
    command = (NGINX, "-c", config, "-p", tmp_path, "-e", tmp_path / "error.log")
    await open_process(*command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    with anyio.fail_after(20):
        while not await listens(port):
            await anyio.sleep(0.02)
    async with httpx2.AsyncClient(base_url=f"http://127.0.0.1:{port}", timeout=20, trust_env=False) as client:
        yield client


async def listens(port):
    try:
        async with await anyio.connect_tcp("127.0.0.1", port):
            return True
    except OSError:
        return False


class Stream:
    """An event stream, with the time at which each chunk arrived."""

    def __init__(self):
        self.chunks = []
        self.ended = False

    async def run(self, client, headers):
        async with client.stream("GET", "/acp", headers={"accept": "text/event-stream", **headers}) as stream:
            assert stream.status_code == 200
            async for chunk in stream.aiter_raw():
                self.chunks.append((time.monotonic(), chunk))
        self.ended = True

    @property
    def body(self):
        return b"".join(chunk for _, chunk in self.chunks)

    @property
    def events(self):
        return [message for _, message in events_in(self.body[: self.body.rfind(b"\n\n") + 2])]


async def until(reached):
    with anyio.fail_after(10):
        while not reached():
            await anyio.sleep(0.01)


async def test_streams_arrive_event_by_event_and_survive_silence(behind_nginx):
    client = behind_nginx
    connection = (await client.post("/acp", json=INITIALIZE)).headers["acp-connection-id"]
    async with anyio.create_task_group() as tasks:
        own, stream = Stream(), Stream()
        tasks.start_soon(own.run, client, ids(connection, None))
        await client.post("/acp", json=request("session/new", 1, cwd="/", mcpServers=[]), headers=ids(connection, None))
        await until(lambda: own.events)
        session = own.events[0]["result"]["sessionId"]
        tasks.start_soon(stream.run, client, ids(connection, session))
        await client.post("/acp", json=prompt(session, "sleep:3", 2), headers=ids(connection, session))
        await until(lambda: len(stream.events) == 1)
        heard = time.monotonic()
        await until(lambda: len(stream.events) == 3)
        # The first update came while the turn was silent, and no idle limit cut what followed three seconds later.
        assert time.monotonic() - heard > 2
        assert not own.ended
        assert not stream.ended
        assert stream.body.count(b": keep-alive") >= 3
        assert stream.events[-1]["result"]["stopReason"] == "end_turn"
        tasks.cancel_scope.cancel()
