"""Every configuration that docs/deployment.md shows runs, and does what the page says of it."""

import re
import signal
import ssl
from contextlib import asynccontextmanager

import anyio
import httpx2
import pytest
import yaml

from acp_integration.client import build_client
from acp_integration.testing.conformance.network import http_wire, websocket_wire
from acp_integration.testing.conformance.peer import peer_on, text_of
from acp_integration.transports.http import HttpTransport
from tests.deployment.page import PAGE, block, blocks

pytestmark = pytest.mark.full

UPDATES = [f"{number} " for number in range(20)]
CONNECTIONS, PROMPTS = 6, 5
ANY_HOST = [("haproxy", "any-host.cfg"), ("nginx", "any-host.conf")]
NEEDS_NO_COOKIE = [("haproxy", "sticky.cfg")]
BY_COOKIE = [("haproxy", "cookie.cfg"), ("nginx", "sticky.conf")]
OTHERS = [("python", ""), ("redis", "redis.conf"), ("yaml", "")]
KEY = "of these tests"
INITIALIZE = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"protocolVersion": 1}}


@pytest.fixture
async def redis(run, free_port, tmp_path, certificate):
    """Where the Redis of the page is, as the page says it."""
    port = free_port()
    text = block("redis", "redis.conf").replace("6379", str(port)).replace("site.pem", str(certificate))
    (tmp_path / "redis.conf").write_text(text)
    run("redis-server", "redis.conf")
    shown = re.search(r'ACP_AGENT_BACKPLANE_URL="(\S+)"', PAGE.read_text())[1]
    url = shown.replace("redis.example.com:6379", f"127.0.0.1:{port}").replace("site.pem", str(certificate))
    with anyio.fail_after(20):
        while True:
            try:
                async with await anyio.connect_tcp("127.0.0.1", port):
                    return url
            except OSError:
                await anyio.sleep(0.02)


@asynccontextmanager
async def peer_through(url, wire=http_wire, **options):
    async with wire(url, **options) as opened, peer_on(opened) as peer:
        await peer.initialize()
        yield peer


async def converse(url, wire=http_wire, **options):
    """Prompts of one connection, whose updates are complete and in order."""
    async with peer_through(url, wire, **options) as peer:
        session = await peer.new_session()
        for _ in range(PROMPTS):
            assert (await peer.prompt(session, "count"))["result"]["stopReason"] == "end_turn"
        assert [text_of(update) for update in peer.updates(session)] == UPDATES * PROMPTS


async def converse_with_cookies(url):
    async with build_client(HttpTransport(url)) as client:
        session = await client.new_session("/")
        for _ in range(PROMPTS):
            assert (await session.prompt("count")).text == "".join(UPDATES)


async def at_once(conversation, *arguments, **options):
    async with anyio.create_task_group() as tasks:
        for _ in range(CONNECTIONS):
            tasks.start_soon(lambda: conversation(*arguments, **options))


def test_every_configuration_of_the_page_is_run_here():
    assert set(blocks()) == {*ANY_HOST, *NEEDS_NO_COOKIE, *BY_COOKIE, *OTHERS}


@pytest.mark.parametrize(("program", "name"), ANY_HOST)
async def test_hosts_that_share_redis_answer_whichever_of_them_a_request_reaches(site, proxy, redis, program, name):
    environ = {"ACP_AGENT_BACKPLANE_URL": redis, "ACP_AGENT_BACKPLANE_KEY": KEY}
    hosts = [(await site(**environ))[0] for _ in range(2)]
    plain, secure = await proxy(program, name, hosts)
    with anyio.fail_after(60):
        await at_once(converse, f"http://127.0.0.1:{plain}/acp", scattered=True)
        await converse(f"http://127.0.0.1:{plain}/acp", websocket_wire)
        # Not by luck: every host knows of the connection that only one of them has.
        async with peer_through(f"http://127.0.0.1:{plain}/acp") as peer:
            session = await peer.new_session()
            for host in hosts:
                peer.wire.url = f"http://127.0.0.1:{host}/acp"
                assert (await peer.prompt(session, "count"))["result"]["stopReason"] == "end_turn"
    await speaks_http2(f"https://localhost:{secure}/health")


async def speaks_http2(url):
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    async with httpx2.AsyncClient(http2=True, verify=context, trust_env=False) as client:
        answer = await client.get(url)
    assert (answer.status_code, answer.http_version) == (200, "HTTP/2")


@pytest.mark.parametrize(("program", "name"), NEEDS_NO_COOKIE)
async def test_each_request_reaches_the_host_of_its_connection_without_cookies(site, proxy, program, name):
    hosts = [(await site())[0] for _ in range(2)]
    plain, _ = await proxy(program, name, hosts)
    with anyio.fail_after(60):
        await at_once(converse, f"http://127.0.0.1:{plain}/acp", scattered=True)
        await converse(f"http://127.0.0.1:{plain}/acp", websocket_wire)
        assert await hosts_used(f"http://127.0.0.1:{plain}/acp") == 2


@pytest.mark.parametrize(("program", "name"), BY_COOKIE)
async def test_each_client_that_keeps_cookies_stays_at_its_host(site, proxy, program, name):
    hosts = [(await site())[0] for _ in range(2)]
    plain, _ = await proxy(program, name, hosts)
    with anyio.fail_after(60):
        await at_once(converse_with_cookies, f"http://127.0.0.1:{plain}/acp")
        await converse(f"http://127.0.0.1:{plain}/acp", websocket_wire)
        assert await hosts_used(f"http://127.0.0.1:{plain}/acp") == 2


async def hosts_used(url):
    """How many of the hosts take new connections."""
    workers = set()
    for _ in range(16):
        async with httpx2.AsyncClient(trust_env=False) as client:
            workers.add((await client.post(url, json=INITIALIZE)).headers["acp-connection-id"].partition(".")[0])
    return len(workers)


async def test_a_pod_answers_its_probes_and_ends_within_its_grace_period(site):
    pod = yaml.safe_load(block("yaml"))["spec"]["template"]["spec"]
    container = pod["containers"][0]
    command = ["{port}" if word == "8000" else word for word in container["command"]]
    environ = {entry["name"]: entry["value"] for entry in container["env"] if "value" in entry}
    port, process = await site(*command, **environ)
    async with httpx2.AsyncClient(trust_env=False) as client:
        for probe in ("readinessProbe", "livenessProbe"):
            path = container[probe]["httpGet"]["path"]
            assert (await client.get(f"http://127.0.0.1:{port}{path}")).status_code == 200
    asked, slept = container["lifecycle"]["preStop"]["exec"]["command"]
    patience = int(command[command.index("--timeout-graceful-shutdown") + 1])
    assert asked == "sleep"
    assert int(slept) + patience < pod["terminationGracePeriodSeconds"]
    assert int(environ["ACP_AGENT_TRANSPORT_HTTP_SHUTDOWN_TIMEOUT"].removesuffix("s")) < patience
    async with httpx2.AsyncClient(trust_env=False) as client:
        opened = await client.post(f"http://127.0.0.1:{port}/acp", json=INITIALIZE)
        headers = {"acp-connection-id": opened.headers["acp-connection-id"], "accept": "text/event-stream"}
        async with client.stream("GET", f"http://127.0.0.1:{port}/acp", headers=headers) as stream:
            assert stream.status_code == 200
            process.send_signal(signal.SIGTERM)
            with anyio.fail_after(patience):
                await stream.aread()
                await anyio.to_thread.run_sync(process.wait)
