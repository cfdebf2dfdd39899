"""What an update costs is decided by what happens for each: no task, no future, no thread, and few writes."""

import asyncio
import json
import math
import os
import sys
import threading
from collections import Counter
from contextlib import asynccontextmanager

import anyio
import pytest

from acp_integration import PromptContext, acp_agent, connection, on
from acp_integration.assembly import AgentBuilder
from acp_integration.transports import output, stdio_transport
from acp_integration.transports.guard import StandardStreams

UPDATES = 1000
SESSIONS = 32
YIELDS = UPDATES // 64


@acp_agent(name="stream")
class StreamAgent:
    @on.prompt
    async def answer(self, turn: PromptContext) -> None:
        for _ in range(UPDATES if turn.text == "stream" else 1):
            await turn.send_message("x" * 20)


class Peer:
    """The client's ends of two pipes; reads in a thread, so that what it does on the loop is not counted."""

    def __init__(self, to_agent: int, from_agent: int) -> None:
        self.to_agent = to_agent
        self._lines = os.fdopen(from_agent, "rb", closefd=False)

    async def call(self, method: str, params: dict[str, object]) -> tuple[dict[str, object], int]:
        request = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
        os.write(self.to_agent, json.dumps(request).encode() + b"\n")
        return await anyio.to_thread.run_sync(self._answer)

    async def call_at_once(self, method: str, calls: list[dict[str, object]]) -> int:
        """The number of updates before the last of the answers."""
        requests = (
            {"jsonrpc": "2.0", "id": number, "method": method, "params": params} for number, params in enumerate(calls)
        )
        os.write(self.to_agent, b"".join(json.dumps(request).encode() + b"\n" for request in requests))
        answers = [await anyio.to_thread.run_sync(self._answer) for _ in calls]
        return sum(updates for _, updates in answers)

    def _answer(self) -> tuple[dict[str, object], int]:
        updates = 0
        while "result" not in (message := json.loads(self._lines.readline())):
            updates += 1
        return message["result"], updates


@asynccontextmanager
async def connected():
    """A peer with an open session of the agent, on real pipes, and the session's id."""
    (agent_reads, peer_writes), (peer_reads, agent_writes) = os.pipe(), os.pipe()
    transport = stdio_transport(StandardStreams(agent_reads, agent_writes))
    runtime = AgentBuilder(StreamAgent).build(transport)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(runtime.serve)
        peer = Peer(peer_writes, peer_reads)
        await peer.call("initialize", {"protocolVersion": 1})
        session, _ = await peer.call("session/new", {"cwd": "/", "mcpServers": []})
        yield peer, session["sessionId"]
        os.close(peer_writes)
    os.close(peer_reads)


@pytest.fixture
def counted(monkeypatch):
    """How often tasks, futures, threads and writes to the peer were made since it was cleared."""
    counts: Counter[str] = Counter()
    loop_class, write, start = asyncio.BaseEventLoop, os.write, threading.Thread.start

    def counting(name, function):
        def call(*arguments, **options):
            counts[name] += 1
            return function(*arguments, **options)

        return call

    monkeypatch.setattr(loop_class, "create_task", counting("tasks", loop_class.create_task))
    monkeypatch.setattr(loop_class, "create_future", counting("futures", loop_class.create_future))
    monkeypatch.setattr(threading.Thread, "start", counting("threads", start))
    monkeypatch.setattr(output.os, "write", counting("writes", write))
    # On a busy machine a sender would rest, which takes a write more, because time went by.
    monkeypatch.setattr(connection, "YIELD_EVERY_SECONDS", math.inf)
    return counts


async def prompt(peer, session, text, counted):
    """The number of updates of one turn, and what was counted during it."""
    params = {"sessionId": session, "prompt": [{"type": "text", "text": text}]}
    await peer.call("session/prompt", params)  # what is made once is made
    counted.clear()
    result, updates = await peer.call("session/prompt", params)
    assert result["stopReason"] == "end_turn"
    return updates, Counter(counted)


async def test_a_turn_is_one_task_however_much_it_sends(counted, bound):
    async with connected() as (peer, session):
        with bound(30):
            one, for_one = await prompt(peer, session, "one", counted)
            many, for_many = await prompt(peer, session, "stream", counted)
    assert (one, many) == (1, UPDATES)
    assert for_one["tasks"] == for_many["tasks"] == 1


async def test_an_update_makes_no_future(counted, bound):
    async with connected() as (peer, session):
        with bound(30):
            _, without = await prompt(peer, session, "one", counted)
            updates, made = await prompt(peer, session, "stream", counted)
    assert updates == UPDATES
    # The peer may read late, and a sender waits for it now and then, but not for each update.
    assert made["futures"] - without["futures"] <= 2 * YIELDS


async def test_a_thousand_updates_take_few_writes(counted, bound):
    async with connected() as (peer, session):
        with bound(30):
            updates, made = await prompt(peer, session, "stream", counted)
    assert updates == UPDATES
    # About nine kilobytes between two rests, in pieces of four; one write more is the prompt's own.
    assert made["writes"] <= 4 * (YIELDS + 2) + 1


async def test_a_prompt_with_little_to_say_is_answered_in_one_write_without_a_thread(counted, bound):
    async with connected() as (peer, session):
        with bound(30):
            updates, made = await prompt(peer, session, "one", counted)
    assert updates == 1
    assert made["writes"] == 2, "the prompt's own, and the answer with its update"
    assert made["threads"] == 0


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux says how much a pipe takes at once")
async def test_the_prompts_of_many_sessions_at_once_are_a_task_each_and_one_write(counted, bound):
    async with connected() as (peer, _):
        with bound(30):
            opened = [await peer.call("session/new", {"cwd": "/", "mcpServers": []}) for _ in range(SESSIONS)]
            text = [{"type": "text", "text": "one"}]
            prompts = [{"sessionId": session["sessionId"], "prompt": text} for session, _ in opened]
            counted.clear()
            updates = await peer.call_at_once("session/prompt", prompts)
            made = Counter(counted)
    assert updates == SESSIONS
    assert made["tasks"] == SESSIONS
    assert made["writes"] == 2, "the prompts' own, and all answers with their updates"
    assert made["threads"] == 0


async def test_a_prompt_is_answered_in_the_pass_of_the_loop_behind_the_one_that_read_it(monkeypatch, bound):
    passes, moments = 0, {"read": [], "write": []}
    loop_class = asyncio.BaseEventLoop
    run_once, read, write = loop_class._run_once, os.read, os.write

    def counting(loop):
        nonlocal passes
        passes += 1
        run_once(loop)

    def reading(fd, size):
        moments["read"].append(passes)
        return read(fd, size)

    async with connected() as (peer, session):

        def writing(fd, data):
            if fd != peer.to_agent:
                moments["write"].append(passes)
            return write(fd, data)

        monkeypatch.setattr(loop_class, "_run_once", counting)
        monkeypatch.setattr(os, "read", reading)
        monkeypatch.setattr(os, "write", writing)
        params = {"sessionId": session, "prompt": [{"type": "text", "text": "one"}]}
        with bound(30):
            await peer.call("session/prompt", params)
    (arrived, *_), (answered, *_) = moments.values()
    assert answered - arrived == 1
