"""Frames that are handed over as they are read, on real pipes."""

import os

import anyio
import pytest

from acp_integration.errors import ConnectionClosed
from acp_integration.transports import stdio_transport
from acp_integration.transports.guard import StandardStreams


@pytest.fixture
async def ends():
    """A transport that is open, and the descriptor its peer writes to."""
    (reads, peer_writes), (peer_reads, writes) = os.pipe(), os.pipe()
    transport = stdio_transport(StandardStreams(reads, writes))
    await transport.open()
    yield transport, peer_writes
    await transport.aclose()
    for fd in (peer_writes, peer_reads):
        os.close(fd)


async def test_what_is_handed_over_is_not_received_again(ends, bound):
    transport, peer = ends
    taken, received, two = [], [], anyio.Event()

    def take(frame):
        taken.append(frame)
        if len(taken) == 2:
            two.set()

    async def receive():
        received.extend(await transport.receive())

    transport.deliver(take)
    with bound(10):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(receive)
            await anyio.lowlevel.checkpoint()
            os.write(peer, b"one\ntwo\nthr")
            await two.wait()
            transport.deliver(None)
            os.write(peer, b"ee\n")
    assert (taken, received) == ([b"one", b"two"], [b"three"])


async def test_frames_that_came_before_somebody_takes_them_are_received_first(ends, bound):
    transport, peer = ends
    with bound(10):
        os.write(peer, b"one\n")
        assert await transport.receive() == [b"one"]
        taken = []
        transport.deliver(taken.append)
        os.write(peer, b"two\n")
        while not taken:
            await anyio.lowlevel.checkpoint()
    assert taken == [b"two"]


async def test_a_failure_of_whoever_takes_the_frames_reaches_whoever_awaits_them(ends, bound):
    transport, peer = ends

    def fail(frame):
        raise ConnectionClosed(frame.decode())

    transport.deliver(fail)
    os.write(peer, b"broken\n")
    with bound(10), pytest.raises(ConnectionClosed, match="broken"):
        await transport.receive()
