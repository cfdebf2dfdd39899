"""Sessions that nobody uses are closed, and a connection that opened thousands is as it was."""

import asyncio
import gc
import time
from typing import Any

import anyio
from rule_agents import started


async def closed(peer: Any, session: str) -> bool:
    prompt = peer.prompt(session, "echo:x")
    await peer.write(prompt)
    return (await peer.answer(prompt)).get("error", {}).get("code") == -32002


async def test_an_idle_session_is_closed_and_its_close_handler_runs(in_memory: Any) -> None:
    async with in_memory("RuleAgent", {"session-idle-timeout": "100ms"}) as peer:
        await peer.initialize()
        session = await peer.new_session()
        with anyio.fail_after(5):
            while session in peer.runtime.peer.sessions:
                await anyio.sleep(0.01)
        assert "close" in started
        assert await closed(peer, session)


async def test_a_session_with_a_turn_running_is_never_idle(in_memory: Any) -> None:
    async with in_memory("RuleAgent", {"session-idle-timeout": "100ms"}) as peer:
        await peer.initialize()
        session = await peer.new_session()
        began = time.monotonic()
        prompt = peer.prompt(session, "sleep:0.6")
        await peer.write(prompt)
        assert (await peer.answer(prompt))["result"]["stopReason"] == "end_turn"
        assert time.monotonic() - began > 0.5
        assert not await closed(peer, session)


async def test_two_thousand_sessions_leave_memory_and_tasks_where_they_were(in_memory: Any) -> None:
    async with in_memory() as peer:
        await peer.initialize()
        await use_sessions(peer, 100)
        gc.collect()
        tasks, before = len(asyncio.all_tasks()), len(gc.get_objects())
        await use_sessions(peer, 2000)
        gc.collect()
        assert len(asyncio.all_tasks()) == tasks
        assert len(peer.runtime.peer.sessions) == 0
        assert len(gc.get_objects()) - before < 1000, "an object kept for each session would be 2,000"


async def use_sessions(peer: Any, count: int) -> None:
    for _ in range(count):
        session = await peer.new_session()
        prompt = peer.prompt(session, "echo:x")
        await peer.write(prompt)
        await peer.answer(prompt)
        await peer.call("session/close", {"sessionId": session})
        peer.log.clear()
        started.clear()
