import asyncio
import logging
import signal
import threading

import anyio
import anyio.to_thread
import pytest

from acp_integration.hosts import AcpAgentHost
from acp_integration.hosts.completion import Completion, Once, hold
from acp_integration.hosts.stopping import stop_within_blocking


class Agent:
    """Serves until it is stopped or its transport ends, and counts what is asked of it."""

    def __init__(self):
        self.served = 0
        self.stopped = 0
        self.ended = asyncio.Event()
        self.serving = asyncio.Event()
        self.left = asyncio.Event()

    async def serve(self):
        self.served += 1
        self.serving.set()
        try:
            await self.ended.wait()
        finally:
            self.left.set()

    def stop(self):
        self.stopped += 1
        self.ended.set()


class Stubborn(Agent):
    def stop(self):
        self.stopped += 1


class Broken(Agent):
    def stop(self):
        self.stopped += 1
        raise OSError("no pipe")


class Failing(Agent):
    async def serve(self):
        self.served += 1
        raise ConnectionError("reset by peer")


class Action:
    """What runs at the end of the transport."""

    def __init__(self):
        self.threads = []
        self.ran = threading.Event()

    def __call__(self):
        self.threads.append(threading.current_thread())
        self.ran.set()


async def ran(action):
    with anyio.fail_after(5):
        await anyio.to_thread.run_sync(action.ran.wait, abandon_on_cancel=True)


def action_threads():
    return [thread for thread in threading.enumerate() if thread.name == "acp-agent-transport-end"]


async def no_action_thread_is_left():
    with anyio.fail_after(5):
        for thread in action_threads():
            await anyio.to_thread.run_sync(thread.join)


async def test_it_serves_until_it_is_stopped():
    agent = Agent()
    host = AcpAgentHost(agent)
    await host.start()
    await agent.serving.wait()
    assert not host.termination().done()
    with anyio.fail_after(5):
        await host.stop(5)
    assert host.termination().done()
    assert (agent.served, agent.stopped) == (1, 1)


async def test_start_twice_serves_once():
    agent = Agent()
    host = AcpAgentHost(agent)
    await host.start()
    await host.start()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(host.start)
    await agent.serving.wait()
    await host.stop(5)
    assert agent.served == 1


async def test_every_graceful_stop_returns_the_same_object_and_stops_once():
    agent = Agent()
    async with AcpAgentHost(agent) as host:
        await agent.serving.wait()
        first = host.stop_gracefully()
        assert host.stop_gracefully() is first
        with anyio.fail_after(5):
            await first
        assert host.stop_gracefully() is first
    assert agent.stopped == 1


async def test_a_graceful_stop_does_not_wait():
    agent = Agent()
    async with AcpAgentHost(agent) as host:
        await agent.serving.wait()
        assert not host.stop_gracefully().done()


async def test_start_after_stop_does_nothing():
    agent = Agent()
    host = AcpAgentHost(agent)
    await host.start()
    await agent.serving.wait()
    await host.stop(5)
    await host.start()
    assert agent.served == 1


async def test_a_stop_before_the_start_ends_the_host_and_the_agent_never_serves():
    agent, action = Agent(), Action()
    host = AcpAgentHost(agent, action)
    with anyio.fail_after(5):
        await host.stop(5)
        await host.termination()
        await host.start()
    assert (agent.served, agent.stopped, action.threads) == (0, 0, [])


async def test_a_stop_while_the_start_is_under_way_lets_the_agent_not_serve():
    agent, action = Agent(), Action()
    host = AcpAgentHost(agent, action)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(host.start)
        await asyncio.sleep(0)
        stopped = host.stop_gracefully()
        with anyio.fail_after(5):
            await stopped
    assert (agent.served, agent.stopped) == (0, 0)
    await no_action_thread_is_left()
    assert not action.threads


async def test_the_action_never_runs_because_of_a_stop():
    agent, action = Agent(), Action()
    async with AcpAgentHost(agent, action) as host:
        await agent.serving.wait()
        await host.stop(5)
    await no_action_thread_is_left()
    assert not action.threads


async def test_the_end_of_the_transport_runs_the_action_once_on_a_thread_that_is_waited_for():
    agent, action = Agent(), Action()
    async with AcpAgentHost(agent, action) as host:
        await agent.serving.wait()
        agent.ended.set()
        with anyio.fail_after(5):
            await host.termination()
        await ran(action)
    await no_action_thread_is_left()
    (thread,) = action.threads
    assert thread.name == "acp-agent-transport-end"
    assert not thread.daemon


async def test_a_transport_that_ended_before_the_host_existed_counts():
    agent, action = Agent(), Action()
    agent.ended.set()
    async with AcpAgentHost(agent, action):
        await ran(action)
    assert len(action.threads) == 1


async def test_a_failing_transport_is_an_end_and_termination_is_normal(caplog):
    agent, action = Failing(), Action()
    async with AcpAgentHost(agent, action) as host:
        with anyio.fail_after(5):
            await host.termination()
        await ran(action)
    assert host.termination().exception() is None
    assert "The transport of the ACP agent failed" in caplog.text


async def test_the_end_of_the_transport_during_a_stop_runs_no_action(monkeypatch):
    agent, action, threads = Stubborn(), Action(), []
    monkeypatch.setattr(threading.Thread, "start", lambda thread: threads.append(thread.name))
    async with AcpAgentHost(agent, action) as host:
        await agent.serving.wait()
        stopped = host.stop_gracefully()
        agent.ended.set()
        with anyio.fail_after(5):
            await stopped
    assert not threads


async def test_a_stop_after_the_end_asks_nothing_of_the_agent():
    agent = Agent()
    async with AcpAgentHost(agent) as host:
        await agent.serving.wait()
        agent.ended.set()
        with anyio.fail_after(5):
            await host.termination()
            await host.stop(5)
    assert agent.stopped == 0


def test_a_host_whose_loop_is_gone_is_stopped_without_an_error():
    hosts = []

    async def main():
        agent = Agent()
        hosts.append(AcpAgentHost(agent))
        await hosts[0].start()
        agent.ended.set()
        await hosts[0].termination()

    asyncio.run(main())
    hosts[0].stop_blocking(5)
    assert hosts[0].stop_gracefully().done()


async def test_a_stop_between_the_end_and_the_action_is_seen_by_the_action_thread(monkeypatch):
    agent, action = Agent(), Action()
    host = AcpAgentHost(agent, action)
    held = []
    monkeypatch.setattr(threading.Thread, "start", lambda thread: held.append(thread))  # noqa: PLW0108  # binds self
    await host.start()
    agent.ended.set()
    await host.termination()
    monkeypatch.undo()
    host.stop_gracefully()
    (thread,) = held
    thread.start()
    thread.join()
    assert not action.threads


async def test_a_failing_action_is_logged(caplog):
    agent = Agent()
    agent.ended.set()
    reached = threading.Event()

    def action():
        reached.set()
        raise ValueError("no")

    async with AcpAgentHost(agent, action):
        with anyio.fail_after(5):
            await anyio.to_thread.run_sync(reached.wait)
        await no_action_thread_is_left()
    assert "The action at the end of the transport failed" in caplog.text


async def test_a_stuck_stop_closes_at_once_after_its_time(caplog):
    agent = Stubborn()
    host = AcpAgentHost(agent)
    await host.start()
    await agent.serving.wait()
    with anyio.fail_after(5):
        await host.stop(0.01)
    assert agent.left.is_set()
    assert host.termination().done()
    assert "The ACP agent did not close within 0.01 s: closing it now" in caplog.text


async def test_a_failed_graceful_stop_closes_at_once(caplog):
    agent = Broken()
    host = AcpAgentHost(agent)
    await host.start()
    await agent.serving.wait()
    with anyio.fail_after(5):
        await host.stop(60)
    assert agent.left.is_set()
    assert isinstance(host.stop_gracefully().exception(), OSError)
    assert "The ACP agent failed to close gracefully: closing it now" in caplog.text


async def test_a_completed_graceful_stop_closes_nothing_at_once(caplog):
    agent = Agent()
    async with AcpAgentHost(agent) as host:
        await agent.serving.wait()
        await host.stop(5)
    assert not [record for record in caplog.records if record.levelno >= logging.WARNING]


async def test_a_cancelled_stop_closes_at_once_and_stays_cancelled(caplog):
    agent = Stubborn()
    host = AcpAgentHost(agent)
    await host.start()
    await agent.serving.wait()
    with anyio.CancelScope() as scope:
        scope.cancel()
        await host.stop(60)
    assert scope.cancelled_caught
    with anyio.fail_after(5):
        await host.termination()
    assert "Interrupted while The ACP agent closed" in caplog.text


async def test_whoever_stops_waiting_for_the_end_does_not_end_the_waiting_of_others():
    agent = Agent()
    async with AcpAgentHost(agent) as host:
        with anyio.move_on_after(0.001):
            await host.termination()
        assert not host.termination().done()
        await host.stop(5)
        await host.termination()


async def test_two_stops_at_once_both_return():
    agent = Agent()
    host = AcpAgentHost(agent)
    await host.start()
    await agent.serving.wait()
    with anyio.fail_after(5):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(host.stop, 5)
            tasks.start_soon(host.stop, 5)
    assert agent.stopped == 1


async def test_an_agent_that_stops_its_own_host_does_not_wait_for_itself():
    class Leaving(Agent):
        async def serve(self):
            await host.stop(60)
            await super().serve()

    agent = Leaving()
    host = AcpAgentHost(agent)
    await host.start()
    with anyio.fail_after(5):
        await host.termination()
    assert agent.stopped == 1


async def test_it_is_stopped_from_another_thread():
    agent = Agent()
    async with AcpAgentHost(agent) as host:
        await agent.serving.wait()
        with anyio.fail_after(5):
            await anyio.to_thread.run_sync(host.stop_blocking, 5)
        assert host.termination().done()


async def test_a_stuck_stop_from_another_thread_closes_at_once(caplog):
    agent = Stubborn()
    async with AcpAgentHost(agent) as host:
        await agent.serving.wait()
        with anyio.fail_after(5):
            await anyio.to_thread.run_sync(host.stop_blocking, 0.01)
            await host.termination()
    assert "did not close within 0.01 s" in caplog.text


async def test_a_blocking_stop_on_the_loops_own_thread_waits_for_nothing_and_keeps_its_bound():
    agent = Stubborn()
    async with AcpAgentHost(agent) as host:
        await agent.serving.wait()
        host.stop_blocking(0.01)
        assert not host.termination().done()
        with anyio.fail_after(5):
            await host.termination()


async def test_a_signal_handler_stops_it():
    agent = Agent()
    previous = signal.signal(signal.SIGUSR1, lambda number, frame: host.stop_gracefully())
    try:
        async with AcpAgentHost(agent) as host:
            await agent.serving.wait()
            signal.raise_signal(signal.SIGUSR1)
            with anyio.fail_after(5):
                await host.termination()
    finally:
        signal.signal(signal.SIGUSR1, previous)
    assert agent.stopped == 1


async def test_the_hold_thread_lives_until_termination_and_is_one():
    agent = Agent()
    async with AcpAgentHost(agent) as host:
        host.hold_until_termination()
        host.hold_until_termination()
        (thread,) = [thread for thread in threading.enumerate() if thread.name == "acp-agent-await"]
        assert not thread.daemon
        await host.stop(5)
        with anyio.fail_after(5):
            await anyio.to_thread.run_sync(thread.join)


async def test_one_transport_has_no_port():
    async with AcpAgentHost(Agent()) as host:
        assert host.port() is None


def test_the_hold_thread_ends_also_when_what_it_waits_for_fails():
    completion = Completion()
    thread = hold(completion, "held")
    assert thread.is_alive()
    completion.fail(OSError("broken"))
    thread.join(5)
    assert not thread.is_alive()


def test_a_loop_that_was_torn_down_ended_the_host_without_an_action():
    action, hosts = Action(), []

    async def main():
        hosts.append(AcpAgentHost(Agent(), action))
        await hosts[0].start()

    asyncio.run(main())
    hosts[0].termination().result(5)
    hosts[0].stop_blocking(5)
    for thread in action_threads():
        thread.join(5)
    assert not action.threads


def test_a_stop_from_a_thread_while_another_starts_never_loses_the_end():
    for _ in range(50):
        host = AcpAgentHost(MinimalAgent())
        go = threading.Barrier(2)
        starter = threading.Thread(target=asyncio.run, args=(_start_when(go, host),))
        starter.start()
        go.wait(5)
        host.stop_blocking(5)
        starter.join(5)
        assert host.termination().done()
        assert not starter.is_alive()


class MinimalAgent:
    """Never ends by itself, so that a lost stop would hang."""

    def __init__(self):
        self._stopped = None

    async def serve(self):
        self._stopped = asyncio.Event()
        await self._stopped.wait()

    def stop(self):
        self._stopped.set()


async def _start_when(go, host):
    await asyncio.to_thread(go.wait, 5)
    await host.start()
    with anyio.fail_after(5):
        await host.termination()


def test_one_claim_succeeds_whatever_thread_it_comes_from():
    once, claims, go = Once(), [], threading.Barrier(8)

    def claim():
        go.wait(5)
        claims.append(once.claim())

    threads = [threading.Thread(target=claim) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(5)
    assert sorted(claims) == [False] * 7 + [True]
    assert once.claimed


def test_an_interrupted_blocking_stop_closes_at_once_and_stays_interrupted():
    closed = []
    graceful = Completion()
    graceful.fail(KeyboardInterrupt())
    with pytest.raises(KeyboardInterrupt):
        stop_within_blocking(5, graceful, lambda: closed.append(1), "It")
    assert closed
