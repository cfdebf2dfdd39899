"""What may be lost is told on both sides, and what was only late arrives."""

import shutil
import subprocess

import anyio
import pytest
from redis.asyncio import Redis

from acp_integration.backplane import redis
from acp_integration.backplane.protocol import WorkerGone
from acp_integration.backplane.redis import RedisBackplane
from acp_integration.errors import ConfigurationError
from tests.backplane.test_redis import KEY, LIMIT, SERVER, Server, server, worker
from tests.backplane.test_unix import Received

__all__ = ["server", "worker"]

pytestmark = pytest.mark.skipif(SERVER is None, reason="redis-server is not installed: .ci/run installs it")

ACL = (
    "--user",
    "acp",
    "on",
    ">hush",
    "~acp:*",
    "-@all",
    "+client|setname",
    "+info",
    "+set",
    "+exists",
    "+xread",
    "+del",
)


async def test_a_hole_is_told_to_who_left_it_too(worker):
    (one, to_one), (_, to_two) = await worker("one"), await worker("two")
    await one.send("two", b"1")
    one._outboxes["two"]._sealer.seal(b"2")
    await one.send("two", b"3")
    await to_two.until(lambda messages: len(messages) == 3)
    await to_one.until(bool)
    assert to_two.messages == [("one", b"1"), ("one", b""), ("one", b"3")]
    assert to_one.messages == [("two", b"")]


async def test_a_worker_whose_sign_of_life_came_late_may_be_taken_for_dead_and_says_so_to_all(worker, monkeypatch):
    (one, to_one), (_, to_two) = await worker("one"), await worker("two")
    await one.send("two", b"x")
    await to_two.until(bool)
    monkeypatch.setattr(redis, "LIVES_FOR", 0.05)
    monkeypatch.setattr(redis, "HEARTBEAT", 0.1)
    await to_one.until(lambda messages: ("two", b"") in messages)
    await to_two.until(lambda messages: ("one", b"") in messages)


async def test_what_is_sent_while_redis_is_away_for_a_moment_arrives(worker, server):
    (one, _), (_, to_two) = await worker("one"), await worker("two")
    await one.send("two", b"before")
    await to_two.until(bool)
    server.stop()
    with anyio.fail_after(20):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(one.send, "two", b"after")
            assert await one.alive("two")
            server.start()
    await to_two.until(lambda messages: ("one", b"after") in messages)
    assert await one.alive("two")


async def test_a_worker_that_has_ended_is_not_waited_for_once_redis_is_settled(worker, server, monkeypatch):
    (one, _), (two, _) = await worker("one"), await worker("two")
    await two.aclose()
    with anyio.fail_after(1):
        assert not await one.alive("two")
        with pytest.raises(WorkerGone, match="has ended"):
            await one.send("two", b"x")


async def test_a_mailbox_whose_numbers_went_back_is_read_from_its_begin(worker, server):
    (one, _), (two, to_two) = await worker("one"), await worker("two")
    two._own._last = "9999999999999-0"
    await one.send("two", b"x")
    async with Redis.from_url(server.url) as client:
        await client.client_kill_filter(_type="normal")
    await to_two.until(bool)
    assert to_two.messages == [("one", b"x")]


@pytest.mark.parametrize("url", ["redis://:hush@host/0?nonsense=1", "http://:hush@host/0"])
def test_an_option_that_is_unknown_is_refused_without_the_password(url):
    with pytest.raises(ConfigurationError, match=r"acp\.agent\.backplane\.url") as failure:
        RedisBackplane(url, KEY, LIMIT)
    assert "hush" not in str(failure.value)


@pytest.fixture
def certificate(tmp_path):
    made = ("-newkey", "rsa:2048", "-nodes", "-days", "2", "-keyout", tmp_path / "key.pem", "-out", tmp_path / "pem")
    named = ("-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1")
    subprocess.run([shutil.which("openssl"), "req", "-x509", *made, *named], check=True, capture_output=True)
    return tmp_path / "pem"


async def test_tls_and_a_user_of_the_url_are_used_and_whoever_redis_is_not_trusted_for_is_not_talked_to(
    spawn, free_port, tmp_path, certificate, caplog
):
    port, files = free_port(), ("--tls-cert-file", certificate, "--tls-key-file", tmp_path / "key.pem")
    tls = ("--tls-port", str(port), *files, "--tls-ca-cert-file", certificate, "--tls-auth-clients", "no")
    Server(spawn, free_port(), tmp_path, *tls, *ACL)
    for user, trusted, reached in (("acp:hush", True, True), ("acp:wrong", True, False), ("acp:hush", False, False)):
        url = f"rediss://{user}@127.0.0.1:{port}/0" + (f"?ssl_ca_certs={certificate}" if trusted else "")
        backplane = RedisBackplane(url, KEY, LIMIT)
        await backplane.start("one", Received())
        try:
            assert await backplane.alive("one") is reached
        finally:
            await backplane.aclose()
    assert "hush" not in caplog.text
    assert "wrong" not in caplog.text
