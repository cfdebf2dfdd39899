"""Real servers with four workers, and a new TCP connection for every request: as one worker, until one is killed."""

import json
import os
import signal
import sys
from collections import Counter
from contextlib import AsyncExitStack, asynccontextmanager, suppress

import anyio
import httpx2
import psutil
import pytest

from acp_integration.client import build_client
from acp_integration.endpoint.forwarding import GONE
from acp_integration.errors import ConnectionClosed
from acp_integration.testing.conformance.network import http_wire
from acp_integration.testing.conformance.peer import peer_on, text_of
from acp_integration.transports.http import HttpTransport

APP = "tests.endpoint.worker_app:app"
GUNICORN = ["gunicorn", "-w", "4", "-k", "uvicorn_worker.UvicornWorker", "-b", "127.0.0.1:{port}", APP]
SERVERS = {
    "uvicorn": ["uvicorn", "--workers", "4", "--port", "{port}", APP],
    "gunicorn": GUNICORN,
    "gunicorn-preload": [*GUNICORN, "--preload"],
}
CONNECTIONS, PROMPTS, UPDATES = 8, 5, 20


@pytest.fixture(params=SERVERS)
async def served(request, serving):
    return await serving(request.param)


@pytest.fixture
def serving(spawn, free_port, repo_root, tmp_path):
    """``url = await serving("uvicorn")``: a server with four workers, each of which is up."""

    async def start(name, store="sessions.db"):
        port = free_port()
        command = [part.format(port=port) for part in SERVERS[name]]
        environ = {**os.environ, "ACP_TEST_STORE": f"sqlite:///{tmp_path / store}"}
        log = (tmp_path / f"{port}.log").open("wb")
        with log:
            spawn(sys.executable, "-m", *command, cwd=repo_root, env=environ, stdout=log, stderr=log)
        await until_up(f"http://127.0.0.1:{port}/acp/health")
        return f"http://127.0.0.1:{port}/acp"

    return start


async def until_up(url):
    with anyio.fail_after(30):
        while True:
            try:
                async with httpx2.AsyncClient(trust_env=False) as http:
                    await http.get(url)
                return
            except httpx2.TransportError:
                await anyio.sleep(0.05)


@asynccontextmanager
async def connected(url):
    async with http_wire(url, scattered=True) as wire, peer_on(wire) as peer:
        await peer.initialize()
        yield peer


async def kill(pid):
    victim = psutil.Process(pid)
    victim.kill()
    with anyio.fail_after(10), suppress(psutil.NoSuchProcess):
        # Its sockets are closed when the last of its threads has ended, which may be after the first.
        while victim.status() != psutil.STATUS_ZOMBIE or victim.num_threads() > 1:
            await anyio.sleep(0.01)


async def pid_of(session):
    return int((await session.prompt("pid")).text)


async def pid_at(peer):
    session = await peer.new_session()
    await peer.prompt(session, "pid")
    return int(text_of(peer.updates(session)[-1]))


async def list_sessions(url, connection, answers):
    body = {"jsonrpc": "2.0", "id": 1, "method": "session/list", "params": {}}
    async with httpx2.AsyncClient(trust_env=False, timeout=30) as http:
        answer = await http.post(url, json=body, headers={"acp-connection-id": connection})
    answers[answer.status_code, answer.text] += 1


async def converse(url):
    """One connection's prompts; its updates are complete and in order."""
    async with connected(url) as peer:
        session = await peer.new_session()
        for _ in range(PROMPTS):
            assert (await peer.prompt(session, str(UPDATES)))["result"]["stopReason"] == "end_turn"
        assert [text_of(update) for update in peer.updates(session)] == [f"{n} " for n in range(UPDATES)] * PROMPTS


async def test_every_prompt_is_answered_whichever_worker_its_requests_reach(served):
    with anyio.fail_after(60):
        async with anyio.create_task_group() as tasks:
            for _ in range(CONNECTIONS):
                tasks.start_soon(converse, served)


async def on_several_workers(stack, url):
    """Sessions of one client each, as many as it takes: the system alone decides which worker takes a connection."""
    sessions, pids = [], []
    with anyio.fail_after(60):
        while len(sessions) < CONNECTIONS or len(set(pids)) < 2:
            client = await stack.enter_async_context(build_client(HttpTransport(url)))
            sessions.append(await client.new_session("/"))
            pids.append(await pid_of(sessions[-1]))
    return sessions, pids


@pytest.mark.parametrize("name", ["uvicorn", "gunicorn"])
async def test_a_killed_worker_takes_only_its_own_connections_and_their_clients_load_elsewhere(serving, name):
    url = await serving(name)
    async with AsyncExitStack() as stack:
        sessions, pids = await on_several_workers(stack, url)
        await kill(pids[0])
        with anyio.fail_after(20):
            for session, pid in zip(sessions, pids, strict=True):
                if pid != pids[0]:
                    assert await pid_of(session) == pid
                    continue
                with pytest.raises(ConnectionClosed, match=r"404|ended"):
                    await session.prompt("pid")
                again = await stack.enter_async_context(build_client(HttpTransport(url)))
                assert await pid_of(await again.load_session(session.id, "/")) != pid


async def test_a_worker_killed_under_load_fails_its_own_turns_and_no_update_of_the_others_is_lost(serving):
    url = await serving("uvicorn")
    async with AsyncExitStack() as stack:
        sessions, pids = await on_several_workers(stack, url)
        begun, outcomes = set(), {}

        async def count(session, pid):
            try:
                async with session.stream("slow 100") as stream:
                    async for _ in stream:
                        begun.add(session.id)
                outcomes[session.id] = pid, stream.result.text
            except ConnectionClosed as error:
                outcomes[session.id] = pid, str(error)

        with anyio.fail_after(60):
            async with anyio.create_task_group() as tasks:
                for session, pid in zip(sessions, pids, strict=True):
                    tasks.start_soon(count, session, pid)
                while len(begun) < CONNECTIONS:
                    await anyio.sleep(0.01)
                await kill(pids[0])
            counted = "".join(f"{number} " for number in range(100))
            for pid, outcome in outcomes.values():
                assert "ended" in outcome or "404" in outcome if pid == pids[0] else outcome == counted
            again = await stack.enter_async_context(build_client(HttpTransport(url)))
            assert await pid_of(await again.load_session(sessions[0].id, "/")) != pids[0]


async def test_a_stopped_worker_is_given_up_in_time_and_holds_up_no_other(serving):
    url = await serving("gunicorn")
    async with AsyncExitStack() as stack:
        held = {}
        for _ in range(50):
            peer = await stack.enter_async_context(connected(url))
            held[await pid_at(peer)] = peer.wire.connection
            if len(held) == 2:
                break
        stopped, _ = held
        os.kill(stopped, signal.SIGSTOP)
        stack.callback(os.kill, stopped, signal.SIGCONT)
        answers = {pid: Counter() for pid in held}
        with anyio.fail_after(25):
            async with anyio.create_task_group() as tasks:
                for pid, connection in [*held.items()] * 10:
                    tasks.start_soon(list_sessions, url, connection, answers[pid])
    assert answers.pop(stopped) == {(404, GONE): 10}
    assert [*answers.values()] == [{(202, ""): 10}]


async def test_inspect_shows_what_every_worker_holds(serving, run_python, repo_root):
    url = await serving("uvicorn")
    async with AsyncExitStack() as stack:
        sessions = [await (await stack.enter_async_context(connected(url))).new_session() for _ in range(CONNECTIONS)]
        words = ("-m", "acp_integration", "inspect", "examples.agents:ProbeAgent", "--json")
        shown = await anyio.to_thread.run_sync(lambda: run_python(*words, cwd=repo_root))
        own = {process.pid for process in psutil.Process().children(recursive=True)}
        workers = [worker for worker in json.loads(shown.stdout)["workers"] if worker["pid"] in own]
    assert len(workers) == 4
    assert sum(worker["connections"] for worker in workers) == CONNECTIONS
    assert sum(worker["sessions"] for worker in workers) == len(sessions)
    assert sum(worker["forwarded_requests"] for worker in workers) > 0


async def test_two_servers_of_one_user_do_not_see_each_others_connections(serving):
    one, other = await serving("uvicorn", "one.db"), await serving("uvicorn", "other.db")
    async with connected(one) as peer, httpx2.AsyncClient(trust_env=False) as http:
        body = {"jsonrpc": "2.0", "id": 1, "method": "session/list", "params": {}}
        headers = {"acp-connection-id": peer.wire.connection}
        for _ in range(8):
            assert (await http.post(other, json=body, headers=headers)).status_code == 404
        assert (await http.post(one, json={**body, "id": 99}, headers=headers)).status_code == 202
