"""The fixtures of this suite keep their own promises."""

import asyncio
import os
import sys

import anyio
import psutil
import pytest
from anyio.streams.buffered import BufferedByteReceiveStream

LEAKY_TESTS = """
import asyncio
from leaky_conftest import *

kept = []

async def test_leaks():
    kept.append(asyncio.get_running_loop().create_task(asyncio.sleep(3600)))

async def test_ends_soon():
    kept.append(asyncio.get_running_loop().create_task(asyncio.sleep(0.01)))

def test_sync():
    pass
"""

# Each child starts one of its own, tells both ids and waits for ever.
PARENT = "import subprocess, sys; print(subprocess.Popen(['sleep', '3600']).pid, flush=True); input()"
PROCESS_TESTS = f"""
import sys
from leaky_conftest import *

PARENT = {PARENT!r}

def note(*pids):
    with open("pids", "a") as file:
        file.writelines(f"{{pid}}\\n" for pid in pids)

def test_spawn(spawn):
    process = spawn(sys.executable, "-c", PARENT)
    note(process.pid, int(process.stdout.readline()))

async def test_open_process(open_process):
    process = await open_process(sys.executable, "-c", PARENT)
    note(process.pid, int(await process.stdout.receive()))
"""


@pytest.fixture
def with_these_fixtures(pytester: pytest.Pytester, repo_root):
    pytester.makepyfile(leaky_conftest=(repo_root / "tests" / "conftest.py").read_text())
    pytester.syspathinsert()
    return pytester


def run_tests(pytester: pytest.Pytester, tests: str) -> pytest.RunResult:
    pytester.makepyfile(tests)
    return pytester.runpytest_subprocess("-p", "anyio", "--anyio-mode=auto")


def test_a_task_left_behind_fails_its_test(with_these_fixtures):
    result = run_tests(with_these_fixtures, LEAKY_TESTS)
    result.assert_outcomes(passed=3, errors=1)
    result.stdout.fnmatch_lines(["*tasks left behind*"])


def test_a_process_ends_with_its_test_and_takes_its_children_along(with_these_fixtures):
    run_tests(with_these_fixtures, PROCESS_TESTS).assert_outcomes(passed=2)
    pids = [int(line) for line in (with_these_fixtures.path / "pids").read_text().splitlines()]
    assert len(pids) == 4
    assert not [pid for pid in pids if psutil.pid_exists(pid) and psutil.Process(pid).status() != psutil.STATUS_ZOMBIE]


async def test_the_loop_is_asyncio_in_debug_mode():
    assert asyncio.get_running_loop().get_debug()


async def test_an_async_process_can_be_talked_to(open_process, bound):
    process = await open_process(sys.executable, "-c", "print(input().upper())")
    with bound():
        await process.stdin.send(b"up\n")
        assert await BufferedByteReceiveStream(process.stdout).receive_until(b"\n", 100) == b"UP"


def test_a_command_runs_to_its_end(run_python):
    done = run_python("-c", "print(input())", stdin="hello\n")
    assert (done.returncode, done.stdout) == (0, "hello\n")


def test_a_spawned_process_leads_its_own_group(spawn):
    process = spawn(sys.executable, "-c", "input()")
    assert os.getpgid(process.pid) == process.pid


def test_a_spawned_process_outlives_its_lifetime_by_no_read(spawn):
    process = spawn(sys.executable, "-c", "input()", lifetime=0.1)
    assert process.stdout.read() == b""


async def test_a_bound_ends_a_wait_that_would_last_for_ever(bound):
    with pytest.raises(TimeoutError), bound(0.01):
        await anyio.sleep_forever()


def test_a_free_port_can_be_listened_on(free_port):
    assert 1024 <= free_port() <= 65535
