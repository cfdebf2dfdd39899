"""Mailboxes in a real Redis: in order, once, bounded, and alive through whatever happens to Redis."""

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import sys

import anyio
import pytest
from redis.asyncio import Redis

from acp_integration.backplane import envelopes, mailbox, outbox, redis
from acp_integration.backplane.protocol import WorkerGone
from acp_integration.backplane.redis import RedisBackplane
from acp_integration.errors import ConfigurationError
from tests.backplane.test_unix import Received

SERVER = shutil.which("redis-server")
LIMIT = 4 * 1024 * 1024
KEY = "the key of these workers"

pytestmark = pytest.mark.skipif(SERVER is None, reason="redis-server is not installed: .ci/run installs it")

WORKER = """
import sys, anyio
from acp_integration.backplane.redis import RedisBackplane

async def main():
    backplane = RedisBackplane(sys.argv[1], sys.argv[2], 10_000)
    await backplane.start("other", lambda sender, message: None)
    print("ready", flush=True)
    await anyio.sleep_forever()

anyio.run(main)
"""


class Server:
    """A Redis of this test's own, that can be stopped and started."""

    def __init__(self, spawn, port, folder, *options):
        self._spawn, self.port, self._folder, self._options = spawn, port, folder, options
        self.url = f"redis://127.0.0.1:{port}/0"
        self.start()

    def start(self):
        words = ("--port", str(self.port), "--bind", "127.0.0.1", "--dir", self._folder, "--save", "")
        command = (SERVER, *words, "--loglevel", "warning", *self._options)
        self.process = self._spawn(*command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        while True:
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", self.port), 1):
                return
            assert self.process.poll() is None

    def stop(self):
        self.process.kill()
        self.process.wait(10)


@pytest.fixture
def server(spawn, free_port, tmp_path):
    return Server(spawn, free_port(), tmp_path)


@pytest.fixture
async def worker(server):
    """``backplane, received = await worker(name)``."""
    async with contextlib.AsyncExitStack() as stack:

        async def start(name, url=None, key=KEY):
            backplane, received = RedisBackplane(url or server.url, key, LIMIT), Received()
            await backplane.start(name, received)
            stack.push_async_callback(backplane.aclose)
            return backplane, received

        yield start


@pytest.fixture
def impatient(monkeypatch):
    """Wait for nothing longer than a test wants to."""
    monkeypatch.setattr(outbox, "SEND_WITHIN", 0.5)
    monkeypatch.setattr(redis, "BELIEVED_FOR", 0.0)
    monkeypatch.setattr(redis, "MAX_PAUSE", 0.05)


async def keys(server):
    async with Redis.from_url(server.url) as client:
        return sorted(key.decode() for key in await client.keys("*"))


async def until(reached):
    with anyio.fail_after(10):
        while not await reached():
            await anyio.sleep(0.01)


async def test_messages_arrive_in_the_order_sent_both_ways(worker):
    (one, to_one), (two, to_two) = await worker("one"), await worker("two")
    numbered = [str(number).encode() for number in range(300)]

    async def send_all(backplane, to):
        for message in numbered:
            await backplane.send(to, message)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(send_all, one, "two")
        tasks.start_soon(send_all, two, "one")
    await to_one.until(lambda messages: len(messages) == 300)
    await to_two.until(lambda messages: len(messages) == 300)
    assert to_one.messages == [("two", message) for message in numbered]
    assert to_two.messages == [("one", message) for message in numbered]


async def test_many_senders_share_a_round_trip_and_every_message_arrives(worker):
    (one, _), (_, to_two) = await worker("one"), await worker("two")
    async with anyio.create_task_group() as tasks:
        for number in range(500):
            tasks.start_soon(one.send, "two", str(number).encode())
    await to_two.until(lambda messages: len(messages) == 500)
    assert {message for _, message in to_two.messages} == {str(number).encode() for number in range(500)}


async def test_what_was_read_is_removed_and_the_end_leaves_no_key(worker, server):
    (one, _), (two, to_two) = await worker("one"), await worker("two")
    for number in range(10):
        await one.send("two", bytes([number]) * 1000)
    await to_two.until(lambda messages: len(messages) == 10)

    async def empty():
        async with Redis.from_url(server.url) as client:
            return not await client.xlen("acp:{two}:box") and not await client.exists("acp:{two}:bytes")

    await until(empty)
    await one.aclose()
    await two.aclose()
    assert await keys(server) == []


async def test_every_key_expires_by_itself(worker, server):
    one, _ = await worker("one")
    async with Redis.from_url(server.url) as client:
        await client.set("acp:{silent}:alive", 1)
        await one.send("silent", b"x")
        for part in ("box", "bytes"):
            assert 0 < await client.pttl(f"acp:{{silent}}:{part}") <= mailbox.KEPT_FOR * 1000
        assert 0 < await client.pttl("acp:{one}:alive") <= mailbox.LIVES_FOR * 1000


async def test_nobody_is_alive_who_gave_no_sign(worker):
    one, _ = await worker("one")
    assert await one.alive("one")
    assert not await one.alive("two")
    with pytest.raises(WorkerGone, match="has ended"):
        await one.send("two", b"x")


async def test_a_message_over_the_limit_is_refused_and_the_next_one_arrives(worker):
    (one, _), (_, to_two) = await worker("one"), await worker("two")
    with pytest.raises(WorkerGone, match="4194305 bytes is larger"):
        await one.send("two", bytes(LIMIT + 1))
    await one.send("two", bytes(LIMIT))
    await to_two.until(bool)
    assert to_two.messages == [("one", bytes(LIMIT))]


@pytest.fixture
def stopped(spawn, server, repo_root, tmp_path):
    """A worker called ``other`` in a process that is stopped."""
    script = tmp_path / "worker.py"
    script.write_text(WORKER)
    environ = {**os.environ, "PYTHONPATH": str(repo_root)}
    process = spawn(sys.executable, script, server.url, KEY, env=environ)
    assert process.stdout.readline() == b"ready\n"
    os.kill(process.pid, signal.SIGSTOP)
    yield process
    os.kill(process.pid, signal.SIGCONT)


async def test_the_mailbox_of_a_stopped_worker_grows_to_its_bound_and_no_further(
    worker, server, stopped, impatient, monkeypatch
):
    monkeypatch.setattr(mailbox, "MAX_MESSAGES", 50)
    one, _ = await worker("one")
    outcomes = []

    async def send():
        try:
            await one.send("other", b"x")
        except WorkerGone as gone:
            outcomes.append(str(gone))
        else:
            outcomes.append("sent")

    with anyio.fail_after(20):
        async with anyio.create_task_group() as tasks:
            for _ in range(200):
                tasks.start_soon(send)
    async with Redis.from_url(server.url) as client:
        assert await client.xlen("acp:{other}:box") == 50
    assert len(outcomes) == 200
    assert "sent" not in outcomes[50:]
    assert any("mailbox is full" in outcome for outcome in outcomes)


async def test_a_mailbox_holds_no_more_bytes_than_its_bound(worker, server, stopped, impatient, monkeypatch):
    monkeypatch.setattr(mailbox, "MAX_BYTES", 10_000)
    one, _ = await worker("one")
    with anyio.fail_after(20), pytest.raises(WorkerGone, match="mailbox is full"):
        await send_for_ever(one, "other")
    async with Redis.from_url(server.url) as client:
        assert int(await client.get("acp:{other}:bytes")) <= 10_000


async def send_for_ever(backplane, to):
    while True:
        await backplane.send(to, bytes(1000))


async def test_a_worker_whose_sign_of_life_fades_is_taken_for_dead(server, worker, impatient):
    one, _ = await worker("one")
    async with Redis.from_url(server.url) as client:
        await client.set("acp:{other}:alive", envelopes.proof_of(KEY.encode(), "other"), px=50)
        assert await one.alive("other")

        async def dead():
            return not await one.alive("other")

        await until(dead)


async def test_redis_that_goes_and_comes_back_is_found_again_and_what_may_be_lost_is_told(worker, server, impatient):
    (one, to_one), (two, to_two) = await worker("one"), await worker("two")
    await one.send("two", b"before")
    await two.send("one", b"before")
    await to_one.until(bool)
    await to_two.until(bool)
    server.stop()
    with anyio.fail_after(20), pytest.raises(WorkerGone, match="Redis is away"):
        await one.send("two", b"lost")
    server.start()
    await to_one.until(lambda messages: ("two", b"") in messages)
    await to_two.until(lambda messages: ("one", b"") in messages)

    async def alive():
        return await one.alive("two")

    await until(alive)
    await one.send("two", b"after")
    await to_two.until(lambda messages: ("one", b"after") in messages)
    assert ("one", b"lost") not in to_two.messages


async def test_a_start_without_redis_succeeds_and_joins_later(worker, server, impatient, caplog):
    server.stop()
    (one, _), (_, to_two) = await worker("one"), await worker("two")
    assert not await one.alive("two")
    server.start()

    async def alive():
        return await one.alive("two")

    await until(alive)
    await one.send("two", b"x")
    await to_two.until(bool)
    assert to_two.messages == [("one", b"x")]
    assert caplog.text.count("Redis cannot be used") == 2
    assert "can be used again" in caplog.text


async def test_cut_connections_lose_nothing_and_repeat_nothing(worker, server, free_port, impatient, monkeypatch):
    monkeypatch.setattr(outbox, "SEND_WITHIN", 10)
    port, cuts = free_port(), 0

    async def relay(client):
        nonlocal cuts
        upstream = await anyio.connect_tcp("127.0.0.1", server.port)
        async with client, upstream, anyio.create_task_group() as tasks:
            tasks.start_soon(copy, client, upstream, tasks.cancel_scope)
            tasks.start_soon(copy, upstream, client, tasks.cancel_scope)
        cuts += 1

    async def copy(source, sink, scope):
        budget = 8000 + 500 * (cuts % 7)  # bytes until this connection is cut
        with contextlib.suppress(anyio.EndOfStream, anyio.BrokenResourceError, anyio.ClosedResourceError):
            while budget > 0:
                data = await source.receive(min(budget, 1000))
                budget -= len(data)
                await sink.send(data)
        scope.cancel()

    async with (
        await anyio.create_tcp_listener(local_host="127.0.0.1", local_port=port) as listener,
        anyio.create_task_group() as tasks,
    ):
        tasks.start_soon(listener.serve, relay)
        url = f"redis://127.0.0.1:{port}/0"
        (one, _), (two, to_two) = await worker("one", url), await worker("two", url)
        with anyio.fail_after(60):
            for number in range(600):
                await one.send("two", str(number).encode())
        await to_two.until(lambda messages: len(messages) >= 600)
        await one.aclose()
        await two.aclose()
        tasks.cancel_scope.cancel()
    assert cuts > 10
    assert to_two.messages == [("one", str(number).encode()) for number in range(600)]


async def test_who_does_not_hold_the_key_is_not_heard(worker, caplog):
    (stranger, _), (one, _), (_, to_two) = await worker("three", key="wrong"), await worker("one"), await worker("two")
    await stranger.send("two", b"forged")
    await one.send("two", b"x")
    await to_two.until(bool)
    assert to_two.messages == [("one", b"x")]
    assert caplog.text.count("nobody with acp.agent.backplane.key wrote it") == 1


async def test_workers_with_different_keys_are_dead_to_each_other_and_are_told_why_once(worker, impatient, caplog):
    (one, _), (stranger, _) = await worker("one"), await worker("three", key="wrong")
    with anyio.fail_after(5):
        for _ in range(3):
            assert not await one.alive("three")
            assert not await stranger.alive("one")
    assert (
        caplog.text.count("Worker three has another acp.agent.backplane.key than this one: set the same for all") == 1
    )
    assert caplog.text.count("Worker one has another acp.agent.backplane.key than this one: set the same for all") == 1


async def test_a_message_that_is_put_in_again_or_elsewhere_is_not_heard(worker, server):
    (one, _), (_, to_two), (_, to_three) = await worker("one"), await worker("two"), await worker("three")
    recorded = envelopes.Sealer(KEY.encode(), "one", "two").seal(b"pay")
    async with Redis.from_url(server.url) as client:
        for name in ("two", "two", "three"):
            await client.xadd(f"acp:{{{name}}}:box", {"m": recorded})
        await client.xadd("acp:{two}:box", {"m": b"junk"})
    await one.send("two", b"x")
    await one.send("three", b"x")
    await to_two.until(lambda messages: ("one", b"x") in messages)
    await to_three.until(bool)
    assert to_two.messages == [("one", b"pay"), ("one", b"x")]
    assert to_three.messages == [("one", b"x")]


async def test_a_hole_in_the_numbers_is_told_before_what_follows(worker, server):
    _, to_two = await worker("two")
    sealer = envelopes.Sealer(KEY.encode(), "one", "two")
    first, _, third = (sealer.seal(message) for message in (b"1", b"2", b"3"))
    async with Redis.from_url(server.url) as client:
        for sealed in (first, third):
            await client.xadd("acp:{two}:box", {"m": sealed})
    await to_two.until(lambda messages: len(messages) == 3)
    assert to_two.messages == [("one", b"1"), ("one", b""), ("one", b"3")]


async def test_a_password_of_the_url_is_used_and_a_wrong_one_is_said_without_being_shown(
    spawn, free_port, tmp_path, impatient, caplog
):
    guarded = Server(spawn, free_port(), tmp_path, "--requirepass", "hush")
    for password in ("hush", "wrong"):
        backplane = RedisBackplane(f"redis://:{password}@127.0.0.1:{guarded.port}/0", KEY, LIMIT)
        await backplane.start("one", Received())
        assert await backplane.alive("one") is (password == "hush")
        await backplane.aclose()
    assert "hush" not in caplog.text
    assert "wrong" not in caplog.text
    assert f"at redis://127.0.0.1:{guarded.port}/0 (AuthenticationError): connections of other" in caplog.text


@pytest.mark.parametrize("url", ["redis://user:hush@host:port/0", "redis://:hush@host/0?socket_timeout=soon"])
def test_a_url_that_cannot_be_used_is_refused_without_its_password(url):
    with pytest.raises(ConfigurationError, match=r"acp\.agent\.backplane\.url") as failure:
        RedisBackplane(url, KEY, LIMIT)
    assert "hush" not in str(failure.value)


async def test_valkey_is_the_same(worker, server):
    one, _ = await worker("one", server.url.replace("redis", "valkey"))
    assert await one.alive("one")


async def test_one_write_that_failed_does_not_count_as_an_outage(worker, server, impatient, monkeypatch):
    monkeypatch.setattr(redis, "ANSWER_WITHIN", 0.2)
    monkeypatch.setattr(redis, "HEARTBEAT", 0.1)
    one, _ = await worker("one")
    async with Redis.from_url(server.url) as client:
        await client.client_pause(1000, all=False)
    with anyio.fail_after(10):
        while not one._reach.away_for:
            await anyio.sleep(0.01)
        while one._reach.away_for:
            await anyio.sleep(0.01)


async def test_the_end_waits_for_no_message_that_cannot_be_written(worker, server):
    one, _ = await worker("one")
    await worker("two")
    assert await one.alive("two")
    server.stop()
    failures = []

    async def send():
        with pytest.raises(WorkerGone) as gone:
            await one.send("two", b"x")
        failures.append(str(gone.value))

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(send)
        await anyio.wait_all_tasks_blocked()
        with anyio.fail_after(outbox.SEND_WITHIN / 2):
            await one.aclose()
    assert failures == ["Worker two cannot be reached: this worker is ending"]


async def test_a_sender_that_is_cancelled_holds_up_nobody(worker, server):
    (one, _), (_, to_two) = await worker("one"), await worker("two")
    for _ in range(20):
        with anyio.move_on_after(0):
            await one.send("two", b"cancelled")
    await one.send("two", b"x")
    await to_two.until(lambda messages: ("one", b"x") in messages)
    assert ("one", b"") not in to_two.messages


async def test_many_large_messages_at_once_arrive(worker):
    (one, _), (_, to_two) = await worker("one"), await worker("two")
    async with anyio.create_task_group() as tasks:
        for number in range(40):
            tasks.start_soon(one.send, "two", bytes([number]) * 500_000)
    await to_two.until(lambda messages: len(messages) == 40)
    assert [message[0] for _, message in to_two.messages] == [*range(40)]
