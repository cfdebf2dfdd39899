import logging
import threading
from contextvars import ContextVar
from pathlib import Path

import anyio
import pytest
from anyio.abc import TaskStatus
from asgiref.sync import async_to_sync
from django.db import connection, connections, transaction
from tickets.models import Ticket

from acp_django.executor import DjangoExecutor
from acp_integration import turn_thread

BOUND = 10.0


def open_files(database: Path) -> int:
    """How many connections this process has to a SQLite file."""
    links = Path("/proc/self/fd").iterdir()
    return sum(link.is_symlink() and link.readlink() == database for link in links)


@pytest.fixture
def executor(database: Path) -> DjangoExecutor:
    return DjangoExecutor(threads=8)


async def test_eight_sync_turns_run_at_the_same_time(executor: DjangoExecutor) -> None:
    together = threading.Barrier(8, timeout=BOUND)

    def handler() -> None:
        Ticket.objects.count()
        together.wait()

    async def turn() -> None:
        async with executor.scope():
            await executor.run(handler)

    with anyio.fail_after(BOUND):
        async with anyio.create_task_group() as turns:
            for _ in range(8):
                turns.start_soon(turn)


async def test_a_turn_keeps_one_thread_for_sync_calls_and_the_async_orm(executor: DjangoExecutor) -> None:
    async with executor.scope():
        connection_of_the_turn = await executor.run(lambda: (threading.get_ident(), id(connection.connection)))
        await Ticket.objects.acreate(title="a")
        assert await executor.run(Ticket.objects.count) == 1
        ident, _ = await executor.run(lambda: (threading.get_ident(), id(connection.connection)))
    assert ident == connection_of_the_turn[0]


async def test_every_database_connection_is_closed_when_its_turn_ends(
    executor: DjangoExecutor, database: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = open_files(database)
    monkeypatch.setitem(connections["default"].settings_dict, "CONN_MAX_AGE", None)

    async def turn(number: int) -> None:
        async with executor.scope():
            await Ticket.objects.acount()
            if number % 2:
                await executor.run(Ticket.objects.count)

    async with executor.scope():
        await Ticket.objects.acount()
        assert open_files(database) == before + 1
    async with anyio.create_task_group() as turns:
        for number in range(50):
            turns.start_soon(turn, number)
    assert open_files(database) == before


async def test_connections_are_closed_when_the_handler_fails(executor: DjangoExecutor, database: Path) -> None:
    before = open_files(database)

    def handler() -> None:
        with transaction.atomic():
            Ticket.objects.create(title="never kept")
            raise ValueError("the handler's own")

    with pytest.raises(ValueError, match="the handler's own"):
        async with executor.scope():
            await executor.run(handler)
    assert open_files(database) == before
    assert not await Ticket.objects.aexists()


async def test_a_cancelled_turn_ends_at_once_and_its_thread_cleans_up_later(
    executor: DjangoExecutor, database: Path
) -> None:
    before, started, release, ended = open_files(database), anyio.Event(), threading.Event(), threading.Event()

    def handler() -> None:
        Ticket.objects.count()
        anyio.from_thread.run_sync(started.set, token=token)
        release.wait(BOUND)
        ended.set()

    async def turn() -> None:
        async with executor.scope():
            await executor.run(handler)

    token = anyio.lowlevel.current_token()
    with anyio.fail_after(BOUND):
        async with anyio.create_task_group() as turns:
            turns.start_soon(turn)
            await started.wait()
            turns.cancel_scope.cancel()
        assert not ended.is_set()
        assert open_files(database) == before + 1
        release.set()
        while open_files(database) != before:
            await anyio.sleep(0.01)
    assert ended.is_set()


async def test_a_turn_past_the_limit_waits_says_so_and_starts_when_a_thread_is_free(
    database: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(turn_thread, "SLOW_START_SECONDS", 0.0)
    executor, ran, release = DjangoExecutor(threads=1), list[str](), threading.Event()

    async def turn(name: str, task_status: TaskStatus[None] = anyio.TASK_STATUS_IGNORED) -> None:
        async with executor.scope():
            task_status.started()
            await executor.run(lambda: ran.append(name) or release.wait(BOUND))

    with anyio.fail_after(BOUND), caplog.at_level(logging.WARNING):
        async with anyio.create_task_group() as turns:
            await turns.start(turn, "first")
            async with anyio.create_task_group() as abandoned:
                await abandoned.start(turn, "cancelled while it waits")
                await anyio.wait_all_tasks_blocked()
                abandoned.cancel_scope.cancel()
            await turns.start(turn, "second")
            while not caplog.records:
                await anyio.sleep(0.01)
            assert ran == ["first"]
            release.set()
    assert ran == ["first", "second"]
    assert "sync-threads" in caplog.text


async def test_an_abandoned_thread_counts_until_it_ends(database: Path) -> None:
    executor, release, started = DjangoExecutor(threads=1), threading.Event(), threading.Event()

    async def abandon() -> None:
        async with executor.scope():
            await executor.run(lambda: started.set() or release.wait(BOUND))

    async with anyio.create_task_group() as turns:
        turns.start_soon(abandon)
        while not started.is_set():
            await anyio.sleep(0.01)
        turns.cancel_scope.cancel()
    with anyio.move_on_after(0.05) as waited:
        async with executor.scope():
            await executor.run(Ticket.objects.count)
    assert waited.cancelled_caught
    release.set()
    with anyio.fail_after(BOUND):
        async with executor.scope():
            assert await executor.run(Ticket.objects.count) == 0


async def test_a_turn_without_sync_calls_takes_no_thread(executor: DjangoExecutor) -> None:
    before = threading.active_count()
    async with executor.scope():
        await anyio.lowlevel.checkpoint()
        assert threading.active_count() == before


async def test_context_variables_reach_the_thread(executor: DjangoExecutor) -> None:
    variable: ContextVar[str] = ContextVar("variable")
    variable.set("from the turn")
    async with executor.scope():
        assert await executor.run(variable.get) == "from the turn"


async def test_a_sync_handler_may_call_async_code_that_uses_the_orm(executor: DjangoExecutor) -> None:
    async def create() -> int:
        await Ticket.objects.acreate(title="from async code")
        return threading.get_ident()

    def handler() -> tuple[int, int]:
        loop_thread = async_to_sync(create)()
        return loop_thread, Ticket.objects.count()

    with anyio.fail_after(BOUND):
        async with executor.scope():
            assert await executor.run(handler) == (threading.get_ident(), 1)


def test_a_sync_caller_lends_its_thread_and_keeps_its_transaction(executor: DjangoExecutor) -> None:
    async def turn() -> int:
        async with executor.scope():
            await executor.run(lambda: Ticket.objects.create(title="in the test's transaction"))
            return await executor.run(threading.get_ident)

    with transaction.atomic():
        assert async_to_sync(turn)() == threading.get_ident()
        assert Ticket.objects.count() == 1
        transaction.set_rollback(True)
    assert not Ticket.objects.exists()
