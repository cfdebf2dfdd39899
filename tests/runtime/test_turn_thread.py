"""A turn's blocking calls share one thread of a pool, which is given back when the turn ends."""

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import anyio
import pytest
from anyio.from_thread import run_sync
from anyio.lowlevel import current_token

from acp_integration.turn_thread import TurnThread


@pytest.fixture
def pool() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(1) as pool:
        yield pool


async def test_all_calls_and_the_end_share_a_thread(pool: ThreadPoolExecutor) -> None:
    threads: list[int] = []
    thread = TurnThread(pool, lambda: threads.append(threading.get_ident()))
    calls = [thread.submit(lambda: threads.append(threading.get_ident())) for _ in range(3)]
    with anyio.fail_after(5):
        await thread.end()
    assert all(call.done() for call in calls)
    assert len(threads) == 4
    assert set(threads) != {threading.get_ident()}
    assert len(set(threads)) == 1


async def test_what_a_call_raises_is_its_callers_and_the_next_call_runs(pool: ThreadPoolExecutor) -> None:
    thread = TurnThread(pool, lambda: None)
    failing, working = thread.submit(int, "no number"), thread.submit(int, "7")
    with anyio.fail_after(5):
        await thread.end()
    assert isinstance(failing.exception(), ValueError)
    assert working.result() == 7


async def test_a_turn_without_calls_takes_no_thread_and_has_nothing_to_close(pool: ThreadPoolExecutor) -> None:
    closed: list[str] = []
    await TurnThread(pool, lambda: closed.append("closed")).end()
    assert closed == []


async def test_the_end_waits_for_no_call_that_still_runs(pool: ThreadPoolExecutor) -> None:
    started, release, closed, token = anyio.Event(), threading.Event(), anyio.Event(), current_token()
    thread = TurnThread(pool, lambda: run_sync(closed.set, token=token))
    thread.submit(lambda: (run_sync(started.set, token=token), release.wait(5)))
    with anyio.fail_after(5):
        await started.wait()
        await thread.end()
        assert not closed.is_set()
        release.set()
        await closed.wait()


async def test_a_turn_that_ends_before_it_got_a_thread_leaves_the_pool_alone(pool: ThreadPoolExecutor) -> None:
    release, ran = threading.Event(), list[str]()
    pool.submit(release.wait, 5)
    thread = TurnThread(pool, lambda: ran.append("the end"))
    thread.submit(lambda: ran.append("a call"))
    with anyio.fail_after(5):
        await thread.end()
    release.set()
    pool.submit(int).result(5)
    assert ran == []
