"""The fixtures of this suite keep their own promises."""

import asyncio
import os
import sys

import anyio
import pytest

LEAKY_TEST = """
import asyncio, pytest
from {conftest} import *

kept = []

async def test_leaks():
    kept.append(asyncio.get_running_loop().create_task(asyncio.sleep(3600)))

async def test_ends_soon():
    kept.append(asyncio.get_running_loop().create_task(asyncio.sleep(0.01)))

def test_sync():
    pass
"""


def test_a_task_left_behind_fails_its_test(pytester: pytest.Pytester, repo_root):
    pytester.makepyfile(leaky_conftest=(repo_root / "tests" / "conftest.py").read_text())
    pytester.makepyfile(LEAKY_TEST.format(conftest="leaky_conftest"))
    pytester.syspathinsert()
    result = pytester.runpytest_subprocess("-p", "anyio", "--anyio-mode=auto")
    result.assert_outcomes(passed=3, errors=1)
    result.stdout.fnmatch_lines(["*tasks left behind*"])


async def test_the_loop_is_asyncio_in_debug_mode():
    assert asyncio.get_running_loop().get_debug()


async def test_an_async_process_is_reaped_with_its_children(open_process, bound):
    process = await open_process(sys.executable, "-c", "print('up', flush=True); input()")
    with bound():
        assert await process.stdout.receive() == b"up\n"
    assert process.returncode is None


def test_a_command_runs_to_its_end(run_python):
    done = run_python("-c", "print(input())", stdin="hello\n")
    assert (done.returncode, done.stdout) == (0, "hello\n")


def test_a_spawned_process_leads_its_own_group(spawn):
    process = spawn(sys.executable, "-c", "input()")
    assert os.getpgid(process.pid) == process.pid


async def test_a_bound_ends_a_wait_that_would_last_for_ever(bound):
    with pytest.raises(TimeoutError), bound(0.01):
        await anyio.sleep_forever()


def test_a_free_port_can_be_listened_on(free_port):
    assert 1024 <= free_port() <= 65535
