"""What one worker writes reaches the other in order, and only what a worker of the group wrote."""

import contextlib
import os
import signal
import socket
import sys

import anyio
import anyio.lowlevel
import pytest

from acp_integration.backplane import link, unix
from acp_integration.backplane.framing import Seal
from acp_integration.backplane.group import Group, join
from acp_integration.backplane.protocol import WorkerGone
from acp_integration.backplane.unix import UnixBackplane

LIMIT = 4 * 1024 * 1024

WORKER = """
import sys, anyio
from pathlib import Path
from acp_integration.backplane.group import join
from acp_integration.backplane.unix import UnixBackplane

async def main():
    backplane = UnixBackplane(join(Path(sys.argv[1])), 1000)
    await backplane.start("other", lambda sender, message: None)
    print("ready", flush=True)
    await anyio.sleep_forever()

anyio.run(main)
"""


class Received:
    """What a worker was handed."""

    def __init__(self):
        self.messages = []
        self._changed = anyio.Event()

    def __call__(self, sender, message):
        self.messages.append((sender, message))
        self._changed.set()
        self._changed = anyio.Event()

    async def until(self, reached):
        with anyio.fail_after(10):
            while not reached(self.messages):
                await self._changed.wait()


async def send_for_ever(backplane, to):
    while True:
        await backplane.send(to, bytes(1000))


@pytest.fixture
async def worker(meeting_place):
    """``backplane, received = await worker(name)``."""
    async with contextlib.AsyncExitStack() as stack:

        async def start(name, group=None, limit=LIMIT):
            backplane, received = UnixBackplane(group or join(meeting_place), limit), Received()
            await backplane.start(name, received)
            stack.push_async_callback(backplane.aclose)
            return backplane, received

        yield start


@pytest.fixture
def other_process(spawn, meeting_place, repo_root, tmp_path):
    """A worker called ``other`` in a process of its own."""
    script = tmp_path / "worker.py"
    script.write_text(WORKER)
    process = spawn(sys.executable, script, meeting_place, env={**os.environ, "PYTHONPATH": str(repo_root)})
    assert process.stdout.readline() == b"ready\n"
    return process


async def test_messages_arrive_in_the_order_sent_both_ways(worker):
    (one, to_one), (two, to_two) = await worker("one"), await worker("two")
    numbered = [str(number).encode() for number in range(1000)]

    async def send_all(backplane, to):
        for message in numbered:
            await backplane.send(to, message)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(send_all, one, "two")
        tasks.start_soon(send_all, two, "one")
    await to_one.until(lambda messages: len(messages) == 1000)
    await to_two.until(lambda messages: len(messages) == 1000)
    assert to_one.messages == [("two", message) for message in numbered]
    assert to_two.messages == [("one", message) for message in numbered]


async def test_senders_at_once_open_one_connection(worker):
    (one, _), (_, to_two) = await worker("one"), await worker("two")
    async with anyio.create_task_group() as tasks:
        for number in range(50):
            tasks.start_soon(one.send, "two", str(number).encode())
    await to_two.until(lambda messages: len(messages) == 50)
    assert len(one._links) == 1


async def test_a_message_as_large_as_the_limit_arrives_whole(worker):
    (one, _), (_, to_two) = await worker("one"), await worker("two")
    await one.send("two", bytes(LIMIT))
    await to_two.until(bool)
    assert to_two.messages == [("one", bytes(LIMIT))]


async def test_a_message_over_the_limit_is_refused_and_the_next_one_arrives(worker):
    (one, _), (_, to_two) = await worker("one"), await worker("two")
    with pytest.raises(WorkerGone, match="4194305 bytes is larger"):
        await one.send("two", bytes(LIMIT + 1))
    await one.send("two", b"again")
    await to_two.until(bool)
    assert to_two.messages == [("one", b"again")]


async def test_a_worker_that_takes_less_hangs_up_on_too_much(worker):
    (one, to_one), (_, to_two) = await worker("one"), await worker("two", limit=1000)
    await one.send("two", b"first")
    await one.send("two", bytes(1001))
    await to_two.until(lambda messages: len(messages) == 2)
    await to_one.until(bool)
    await one.send("two", b"again")
    await to_two.until(lambda messages: len(messages) == 3)
    assert to_two.messages == [("one", b"first"), ("one", b""), ("one", b"again")]


async def test_nobody_is_alive_who_does_not_listen(worker):
    one, _ = await worker("one")
    assert not await one.alive("two")
    with pytest.raises(WorkerGone) as gone:
        await one.send("two", b"x")
    assert gone.value.worker == "two"


@pytest.mark.parametrize("name", ["", "..", "../two", "key", "a/b"])
async def test_a_name_that_is_no_worker_reaches_nothing(worker, name):
    one, _ = await worker("one")
    assert not await one.alive(name)


async def test_a_worker_that_ends_is_gone_and_leaves_no_socket(worker, meeting_place):
    (one, to_one), (two, _) = await worker("one"), await worker("two")
    assert await one.alive("two")
    await two.aclose()
    await to_one.until(bool)
    assert to_one.messages == [("two", b"")]
    assert not await one.alive("two")
    assert {path.name for path in meeting_place.iterdir()} == {"key", "one"}


async def test_what_a_worker_wrote_before_its_end_is_taken_before_its_end_is_told(worker):
    (one, to_one), (two, _) = await worker("one"), await worker("two")
    await one.send("two", b"question")
    for number in range(100):
        await two.send("one", str(number).encode())
    await two.aclose()
    await to_one.until(lambda messages: ("two", b"") in messages)
    assert to_one.messages == [("two", str(number).encode()) for number in range(100)] + [("two", b"")]


async def test_a_worker_that_is_killed_is_gone_and_its_socket_is_removed_by_the_next(
    worker, other_process, meeting_place
):
    one, to_one = await worker("one")
    await one.send("other", b"x")
    other_process.kill()
    await to_one.until(bool)
    assert to_one.messages == [("other", b"")]
    assert not await one.alive("other")
    assert (meeting_place / "other").is_socket()
    await worker("three")
    assert {path.name for path in meeting_place.iterdir()} == {"key", "one", "three"}


async def test_a_worker_that_is_stopped_is_not_alive_and_takes_nothing_for_ever(worker, other_process, monkeypatch):
    monkeypatch.setattr(link, "ANSWER_WITHIN", 0.2)
    monkeypatch.setattr(link, "BELIEVED_FOR", 0.0)
    monkeypatch.setattr(link, "SEND_WITHIN", 0.2)
    one, _ = await worker("one")
    assert await one.alive("other")
    os.kill(other_process.pid, signal.SIGSTOP)
    try:
        assert not await one.alive("other")
        with anyio.fail_after(20), pytest.raises(WorkerGone):
            await send_for_ever(one, "other")
    finally:
        os.kill(other_process.pid, signal.SIGCONT)


async def test_who_does_not_hold_the_key_is_not_heard(worker, meeting_place, caplog):
    _, to_two = await worker("two")
    stranger, _ = await worker("one", Group(meeting_place, b"another key"))
    await stranger.send("two", b"x")
    with anyio.fail_after(5):
        while stranger._links:
            await anyio.sleep(0.005)
    assert to_two.messages == []
    assert "does not hold the key" in caplog.text


async def test_what_was_recorded_cannot_be_played_again(worker, meeting_place):
    _, to_two = await worker("two")
    key = join(meeting_place).key

    def hello(nonce):
        seal = Seal(key, link.purpose("one", "two", nonce))
        return b"\x00\x00\x00\x03one" + seal.frame(b"") + seal.frame(b"pay")

    stream = await anyio.connect_unix(meeting_place / "two")
    async with stream:
        recorded = hello(await stream.receive(link.NONCE_BYTES))
        await stream.send(recorded)
        await to_two.until(bool)
    async with await anyio.connect_unix(meeting_place / "two") as stream:
        await stream.receive(link.NONCE_BYTES)
        await stream.send(recorded)
        with anyio.fail_after(5), pytest.raises(anyio.EndOfStream):
            await stream.receive()
    assert [message for _, message in to_two.messages if message] == [b"pay"]


@pytest.mark.parametrize("junk", [b"\xff" * 64, b"\x00\x00\x00\x00" * 20, b"GET / HTTP/1.1\r\n\r\n"])
async def test_junk_ends_its_own_connection_only(worker, meeting_place, junk):
    (one, _), (_, to_two) = await worker("one"), await worker("two")
    async with await anyio.connect_unix(meeting_place / "two") as stream:
        await stream.receive(link.NONCE_BYTES)
        await stream.send(junk)
        with anyio.fail_after(5), contextlib.suppress(anyio.EndOfStream, anyio.BrokenResourceError):
            await stream.receive()
    await one.send("two", b"x")
    await to_two.until(bool)
    assert to_two.messages == [("one", b"x")]


async def test_who_says_nothing_is_hung_up_on(worker, meeting_place, monkeypatch):
    monkeypatch.setattr(unix, "HELLO_WITHIN", 0.05)
    await worker("two")
    async with await anyio.connect_unix(meeting_place / "two") as stream:
        await stream.receive(link.NONCE_BYTES)
        with anyio.fail_after(5), pytest.raises(anyio.EndOfStream):
            await stream.receive()


async def test_a_socket_that_nobody_answers_is_no_worker(worker, meeting_place, monkeypatch):
    monkeypatch.setattr(link, "CONNECT_WITHIN", 0.05)
    one, _ = await worker("one")
    with socket.socket(socket.AF_UNIX) as silent:
        silent.bind(str(meeting_place / "two"))
        silent.listen()
        assert not await one.alive("two")


async def test_a_worker_that_does_not_answer_holds_nobody_else_up(worker, meeting_place):
    (one, _), (_, to_three) = await worker("one"), await worker("three")
    with socket.socket(socket.AF_UNIX) as silent:
        silent.bind(str(meeting_place / "two"))
        silent.listen()
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(one.alive, "two")
            await anyio.wait_all_tasks_blocked()
            with anyio.fail_after(link.CONNECT_WITHIN / 2):
                await one.send("three", b"x")
                await to_three.until(bool)
            tasks.cancel_scope.cancel()


async def test_all_who_wait_for_a_worker_that_does_not_answer_wait_together(worker, meeting_place, monkeypatch):
    monkeypatch.setattr(link, "CONNECT_WITHIN", 0.3)
    one, _ = await worker("one")
    with socket.socket(socket.AF_UNIX) as silent:
        silent.bind(str(meeting_place / "two"))
        silent.listen()
        with anyio.fail_after(5):
            async with anyio.create_task_group() as tasks:
                for _ in range(100):
                    tasks.start_soon(one.alive, "two")


async def test_who_leaves_while_a_worker_is_connected_takes_nobody_along(worker):
    (one, _), (_, to_two) = await worker("one"), await worker("two")
    async with anyio.create_task_group() as tasks, anyio.create_task_group() as leaving:
        leaving.start_soon(one.send, "two", b"never")
        await anyio.lowlevel.checkpoint()
        tasks.start_soon(one.send, "two", b"x")
        leaving.cancel_scope.cancel()
    await to_two.until(bool)
    assert to_two.messages == [("one", b"x")]


async def test_when_one_direction_ends_both_sides_learn_that_something_may_be_lost(worker):
    (one, to_one), (two, to_two) = await worker("one"), await worker("two")
    await one.send("two", b"x")
    await two.send("one", b"y")
    await to_one.until(bool)
    one._links["two"].close()
    await to_two.until(lambda messages: ("one", b"") in messages)
    await to_one.until(lambda messages: ("two", b"") in messages)
    await one.send("two", b"again")
    await two.send("one", b"again")
    await to_two.until(lambda messages: messages[-1] == ("one", b"again"))
    await to_one.until(lambda messages: messages[-1] == ("two", b"again"))


async def test_files_in_use_do_not_grow_old(worker, meeting_place, monkeypatch):
    monkeypatch.setattr(unix, "SHOW_USE_EVERY", 0.01)
    await worker("one")
    files = [meeting_place / "key", meeting_place / "one"]
    for path in files:
        os.utime(path, (0, 0))
    with anyio.fail_after(5):
        while not all(path.stat().st_mtime for path in files):
            await anyio.sleep(0.005)


async def test_after_the_end_nobody_is_reached(worker):
    (one, _), _ = await worker("one"), await worker("two")
    await one.aclose()
    assert not await one.alive("two")
