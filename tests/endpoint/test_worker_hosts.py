"""Two servers that share nothing but Redis, behind a proxy that sends each TCP connection to the next of them."""

import os
import sys

import anyio
import pytest

from acp_integration.client import build_client
from acp_integration.errors import ConnectionClosed, PeerError
from acp_integration.transports.http import HttpTransport
from tests.backplane.test_redis import SERVER, Server
from tests.conformance.cells import round_robin
from tests.endpoint.test_worker_processes import APP, CONNECTIONS, connected, converse, until_up

pytestmark = pytest.mark.skipif(SERVER is None, reason="redis-server is not installed: .ci/run installs it")


@pytest.fixture
def redis(spawn, free_port, tmp_path):
    return Server(spawn, free_port(), tmp_path)


@pytest.fixture
async def hosts(redis, spawn, free_port, repo_root, tmp_path):
    """The URLs of two servers, each with a store of its own, as two hosts have."""
    urls = []
    for number in range(2):
        port, store = free_port(), f"sqlite:///{tmp_path / f'{number}.db'}"
        environ = {**os.environ, "ACP_TEST_STORE": store, "ACP_TEST_BACKPLANE": redis.url}
        with (tmp_path / f"{number}.log").open("wb") as log:
            command = (sys.executable, "-m", "uvicorn", "--port", str(port), APP)
            spawn(*command, cwd=repo_root, env=environ, stdout=log, stderr=log)
        urls.append(f"http://127.0.0.1:{port}/acp")
    for url in urls:
        await until_up(f"{url}/health")
    return urls


async def test_every_prompt_is_answered_whichever_host_its_requests_reach(hosts):
    async with round_robin(hosts) as url:
        with anyio.fail_after(60):
            async with anyio.create_task_group() as tasks:
                for _ in range(CONNECTIONS):
                    tasks.start_soon(converse, url)


async def test_without_redis_each_host_serves_its_own_connections(hosts, redis):
    redis.stop()
    for url in hosts:
        with anyio.fail_after(20):
            await converse(url)


async def test_while_redis_is_away_and_back_turns_go_on_or_fail_clearly_and_repeat_nothing(hosts, redis):
    outcomes = []

    async def prompt_on(url, started):
        try:
            async with build_client(HttpTransport(url)) as client:
                session = await client.new_session("/")
                started.release()
                for _ in range(20):
                    result = await session.prompt("slow 40")
                    assert result.text == "".join(f"{number} " for number in range(40))
                    outcomes.append("whole")
        except (ConnectionClosed, PeerError) as error:
            outcomes.append(str(error))

    async with round_robin(hosts) as url:
        started = anyio.Semaphore(0)
        with anyio.fail_after(90):
            async with anyio.create_task_group() as tasks:
                for _ in range(CONNECTIONS):
                    tasks.start_soon(prompt_on, url, started)
                for _ in range(CONNECTIONS):
                    await started.acquire()
                redis.stop()
                await anyio.sleep(5)
                redis.start()
            await again(url)
    failures = [outcome for outcome in outcomes if outcome != "whole"]
    assert len(failures) <= CONNECTIONS
    assert len(outcomes) - len(failures) >= CONNECTIONS


async def again(url):
    """Every host is reached from the other one again."""
    while True:
        try:
            async with connected(url) as peer:
                session = await peer.new_session()
                await peer.prompt(session, "3")
        except* Exception:  # noqa: BLE001  # whatever a host answers that does not know the other one yet
            await anyio.sleep(0.1)
        else:
            return
