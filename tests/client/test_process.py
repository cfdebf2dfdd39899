"""Agents that run as child processes: however they behave, calls end and nothing is left behind."""

import asyncio
import gc
import json
import logging
import os
import signal
import sys
import threading
from pathlib import Path

import anyio
import psutil
import pytest

from acp_integration.client.builder import build_client
from acp_integration.errors import AgentExited, AgentTimeout, ConnectionClosed
from acp_integration.transports import process as process_module
from acp_integration.transports.child import environment, group_members, resolve_command
from acp_integration.transports.process import ProcessTransport

ROGUE = str(Path(__file__).parent / "agents" / "rogue.py")


def rogue(*arguments, **options):
    return ProcessTransport(sys.executable, [ROGUE, *arguments], **options)


def open_descriptors():
    return {entry.name for entry in Path("/proc/self/fd").iterdir()}


def agent_threads():
    return {thread for thread in threading.enumerate() if thread.name.startswith("acp-agent")}


@pytest.fixture(autouse=True)
def nothing_is_left():
    """No process, thread or descriptor outlives a test."""
    before = len(open_descriptors())
    yield
    assert not psutil.Process().children(recursive=True)
    assert not agent_threads()
    assert len(open_descriptors()) <= before


@pytest.fixture
def short_grace(monkeypatch):
    """Shut down at once what does not end by itself."""
    monkeypatch.setattr(process_module, "EXIT_GRACE", 0.1)
    monkeypatch.setattr(process_module, "TERMINATE_GRACE", 0.3)


async def ended(pid):
    """Wait until a process that is not our child has ended."""
    while psutil.pid_exists(pid) and psutil.Process(pid).status() != psutil.STATUS_ZOMBIE:
        await anyio.sleep(0.01)


async def prompted(transport, settings=None):
    async with build_client(transport, settings) as client:
        return await (await client.new_session("/")).prompt("hi")


# -- what an agent may do and goes on ----------------------------------------------------------------------------------


async def test_a_polite_agent_is_started_prompted_and_ended(bound):
    transport = rogue()
    with bound(20):
        assert (await prompted(transport)).text == "hello"
    assert "rogue agent is up" in transport.stderr_tail


async def test_a_megabyte_on_stderr_blocks_nothing_and_its_end_is_kept(bound):
    transport = rogue("stderr")
    with bound(20):
        assert (await prompted(transport)).stop_reason == "end_turn"
    assert f"{9_999:099}" in transport.stderr_tail
    assert len(transport.stderr_tail.splitlines()) <= 50


async def test_stderr_goes_line_by_line_to_its_own_logger(bound, caplog):
    caplog.set_level(logging.INFO)
    with bound(20):
        await prompted(rogue())
    logged = [r.message for r in caplog.records if r.name == "acp_integration.transports.process.stderr"]
    assert logged == ["rogue agent is up"]


async def test_banners_and_scalars_on_stdout_are_skipped_counted_and_warned_of_once(bound, caplog):
    transport = rogue("banner")
    with bound(20):
        assert (await prompted(transport)).stop_reason == "end_turn"
    assert transport.skipped_lines == 6
    assert caplog.text.count("no protocol message") == 1


async def test_bytes_that_are_no_utf_8_become_replacement_characters(bound):
    with bound(20):
        assert (await prompted(rogue("utf8"))).text == "a\ufffdb"


async def test_a_line_of_twenty_megabytes_arrives(bound):
    with bound(30):
        assert len((await prompted(rogue("long"))).text) == 20_000_000


async def test_a_line_over_the_limit_is_dropped_and_the_next_one_arrives(bound, caplog):
    with bound(30):
        result = await prompted(rogue("long", max_message_size=1_000_000))
    assert (result.text, result.stop_reason) == ("", "end_turn")
    assert "more than 1000000 bytes" in caplog.text


async def test_updates_of_an_unknown_kind_are_kept(bound):
    with bound(20):
        assert [update.kind for update in (await prompted(rogue("unknown"))).updates] == ["hologram"]


async def test_updates_before_the_answer_to_new_session_are_handled_first(bound):
    texts = []
    with bound(20):
        client = build_client(rogue("early"), None, [lambda b: b.on_update(lambda update: texts.append(update.text))])
        async with client:
            await client.new_session("/")
            assert texts == ["before the session"]


# -- death and silence -------------------------------------------------------------------------------------------------

STAGES = ["initialize", "session/new", "session/prompt"]


@pytest.mark.parametrize("stage", STAGES)
async def test_death_fails_the_call_at_once_with_exit_code_and_stderr(stage, bound):
    with bound(20), pytest.raises(AgentExited, match="exited with code 3") as failure:
        await prompted(rogue("dies", stage))
    assert failure.value.returncode == 3
    assert "about to fail" in failure.value.stderr_tail
    assert failure.value.command == sys.executable


@pytest.mark.parametrize("stage", STAGES)
async def test_death_by_a_signal_names_the_signal(stage, bound):
    with bound(20), pytest.raises(AgentExited, match=r"exited with code 137 \(signal 9, SIGKILL\)") as failure:
        await prompted(rogue("killed", stage))
    assert failure.value.returncode == -signal.SIGKILL


@pytest.mark.parametrize("stage", STAGES)
async def test_silence_ends_with_the_timeout_of_its_stage(stage, make_settings, bound):
    limits = {"initialize": "initialize_timeout", "session/new": "request_timeout", "session/prompt": "prompt_timeout"}
    settings = make_settings(**{limits[stage]: 1.5})
    with bound(20), pytest.raises(AgentTimeout) as failure:
        await prompted(rogue("silent", stage), settings)
    assert failure.value.method == stage
    assert "rogue agent is up" in str(failure.value)


async def test_a_program_that_is_no_agent_times_out_and_the_error_shows_it(make_settings, bound, short_grace):
    transport = rogue("tui")
    with bound(20), pytest.raises(AgentTimeout) as failure:
        await prompted(transport, make_settings(initialize_timeout=1.0))
    assert sys.executable in str(failure.value)
    assert transport.skipped_lines == 1


async def test_calls_after_the_death_fail_at_once_too(bound):
    client = build_client(rogue("dies", "session/new"))
    with bound(20):
        await client.initialize()
        for _ in range(2):
            with pytest.raises(AgentExited, match="code 3"):
                await client.new_session("/")
        await client.aclose()


async def test_an_agent_that_closes_its_output_but_runs_on_is_given_up(bound, monkeypatch, short_grace):
    with bound(20), pytest.raises(ConnectionClosed, match="closed its output but goes on running"):
        await prompted(rogue("closes", "session/new"))


# -- ending it ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", ["lingering", "stubborn"])
async def test_an_agent_that_does_not_end_is_terminated_and_then_killed(mode, bound, short_grace):
    transport = rogue(mode)
    with bound(20):
        await prompted(transport)
    assert not psutil.pid_exists(transport.pid)


@pytest.mark.parametrize("manners", ["", "stubborn"])
async def test_no_grandchild_survives_the_close(manners, bound, short_grace):
    with bound(20):
        result = await prompted(rogue("grandchild", manners))
        await ended(int(result.text))


async def test_a_grandchild_that_holds_stdout_does_not_hide_the_death_and_does_not_survive_it(bound):
    client = build_client(rogue("grandchild", "orphan"))
    pids = []
    client_updates = []
    with bound(20):
        async with client:
            session = await client.new_session("/")
            handle = await session.start("hi")
            with pytest.raises(AgentExited, match="code 0"):
                await handle.result()
            client_updates += handle.updates
        pids += [int(update.text) for update in client_updates]
        await ended(pids[0])


async def test_a_shell_that_starts_something_beside_the_agent_leaves_nothing(bound):
    command = f"sleep 300 & exec {sys.executable} {ROGUE}"
    transport = ProcessTransport("sh", ["-c", command])
    with bound(20):
        assert (await prompted(transport)).text == "hello"
    assert group_members(transport.pid) == []


async def test_a_cancelled_open_leaves_no_process(bound):
    client = build_client(rogue("silent", "initialize"))
    with bound(20):
        with anyio.move_on_after(0.3):
            await client.initialize()
        await client.aclose()


async def test_an_interpreter_that_ends_without_closing_kills_its_agent(run_python, bound):
    program = (
        "import asyncio\n"
        "from acp_integration.transports.process import ProcessTransport\n"
        "transport = ProcessTransport('sleep', ['300'])\n"
        "asyncio.new_event_loop().run_until_complete(transport.open())\n"
        "print(transport.pid)\n"
    )
    done = await anyio.to_thread.run_sync(lambda: run_python("-W", "ignore", "-c", program))
    with bound():
        await ended(int(done.stdout))


async def test_an_interpreter_that_is_killed_takes_its_agent_with_it(run_python, bound):
    program = (
        "import anyio, os, signal, sys\n"
        "from acp_integration.transports.process import ProcessTransport\n"
        "async def main():\n"
        "    transport = ProcessTransport(sys.executable, [sys.argv[1]])\n"
        "    await transport.open()\n"
        "    print(transport.pid, flush=True)\n"
        "    os.kill(os.getpid(), signal.SIGKILL)\n"
        "anyio.run(main)\n"
    )
    done = await anyio.to_thread.run_sync(lambda: run_python("-c", program, ROGUE))
    with bound():
        await ended(int(done.stdout))


async def test_closing_twice_and_from_two_tasks_ends_once(bound, caplog):
    caplog.set_level(logging.INFO)
    client = build_client(rogue())
    with bound(20):
        await client.initialize()
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(client.aclose)
            tasks.start_soon(client.aclose)
        await client.aclose()
    assert caplog.text.count("has ended: exited with code 0") == 1


async def test_a_transport_starts_one_agent_only(bound):
    transport = rogue()
    with bound(20):
        await transport.open()
        with pytest.raises(ConnectionClosed, match="started its agent already"):
            await transport.open()
        await transport.aclose()
        await transport.aclose()


async def test_a_transport_that_was_never_opened_can_be_closed():
    transport = rogue()
    await transport.aclose()
    with pytest.raises(ConnectionClosed):
        await transport.open()


async def test_many_cycles_leave_the_process_as_it_was(bound):
    cat = ProcessTransport
    with bound(60):
        for _ in range(200):
            transport = cat("cat")
            await transport.open()
            transport.write(b'{"jsonrpc":"2.0","method":"x"}')
            assert await transport.receive() == [b'{"jsonrpc":"2.0","method":"x"}']
            await transport.aclose()


async def test_200_clients_that_open_talk_and_close_leave_the_process_as_it_was(bound, caplog):
    caplog.set_level(logging.ERROR)  # what is logged is kept until the test has ended
    held = []
    with bound(120):
        for cycle in range(200):
            async with build_client(rogue()) as client:
                session = await client.new_session("/")
                assert (await session.prompt("hi")).stop_reason == "end_turn"
            if cycle in (19, 199):
                del client, session
                gc.collect()
                held.append((len(gc.get_objects()), len(open_descriptors()), threading.active_count(), tasks()))
    (objects_soon, *soon), (objects_late, *late) = held
    assert late == soon
    assert objects_late - objects_soon < 180  # less than one object a cycle


def tasks():
    return len(asyncio.all_tasks())


async def test_an_agent_that_does_not_read_makes_the_sender_wait_and_can_still_be_closed(bound, short_grace):
    transport = ProcessTransport("sleep", ["60"])
    with bound(20):
        await transport.open()
        while not transport.congested:
            transport.write(b"x" * 100_000)
        with anyio.move_on_after(0.05) as waited:
            await transport.drain()
        assert waited.cancelled_caught
        await transport.aclose()
        await transport.drain()


async def test_a_turn_is_cancelled_without_waiting_for_an_agent_that_does_not_read(bound, short_grace):
    transport = rogue("deaf", "session/prompt")
    with bound(20):
        async with build_client(transport) as client:
            session = await client.new_session("/")
            handle = await session.start("hi")
            while not transport.congested:
                transport.write(b"x" * 100_000)
            with bound(1):
                await session.cancel()
                await handle.cancel()
        with pytest.raises(ConnectionClosed):
            await handle.result()


# -- starting it -------------------------------------------------------------------------------------------------------


async def test_a_command_that_is_not_there_says_so():
    with pytest.raises(ConnectionClosed, match="no-such-agent was not found"):
        await build_client(ProcessTransport("no-such-agent")).initialize()


async def test_a_command_that_cannot_be_executed_says_so(tmp_path):
    script = tmp_path / "agent"
    script.write_text("#!/bin/sh\n")
    with pytest.raises(ConnectionClosed, match="is not executable"):
        await build_client(ProcessTransport(str(script))).initialize()


async def test_a_directory_that_is_not_there_says_so(tmp_path):
    with pytest.raises(ConnectionClosed, match="no such directory"):
        await build_client(ProcessTransport(sys.executable, cwd=str(tmp_path / "gone"))).initialize()


async def test_the_agent_starts_in_its_directory(tmp_path, bound):
    with bound(20):
        assert (await prompted(rogue("directory", cwd=str(tmp_path)))).text == str(tmp_path)


@pytest.mark.parametrize(
    ("inherit", "expected"),
    [(True, {"SECRET", "PATH", "ADDED"}), (False, {"PATH", "ADDED"}), (["SECRET"], {"SECRET", "ADDED"})],
)
async def test_the_environment_follows_its_policy(inherit, expected, monkeypatch, bound):
    monkeypatch.setenv("SECRET", "s")
    with bound(20):
        result = await prompted(rogue("environment", env={"ADDED": "two\nlines"}, inherit_environment=inherit))
    given = json.loads(result.text)
    assert set(given) & {"SECRET", "PATH", "ADDED"} == expected
    assert given["ADDED"] == "two\nlines"


def test_a_minimal_environment_is_six_variables_and_the_added_ones(monkeypatch):
    monkeypatch.setattr(os, "environ", {"HOME": "/h", "PATH": "/p", "LANG": "C", "USER": "u"})
    assert environment(False, {"KEY": "v"}) == {"HOME": "/h", "PATH": "/p", "USER": "u", "KEY": "v"}


def test_no_value_of_the_environment_and_no_argument_shows_in_the_repr():
    shown = repr(ProcessTransport("agent", ["--token=secret"], env={"API_KEY": "secret"}))
    assert "API_KEY" in shown
    assert "secret" not in shown


def test_a_windows_shim_is_found_by_its_ending(tmp_path):
    shim = tmp_path / "npx.cmd"
    shim.write_text("@echo off")
    shim.chmod(0o755)
    assert resolve_command("npx", str(tmp_path), ".COM;.EXE;.BAT;.CMD", windows=True) == str(shim)
    with pytest.raises(ConnectionClosed):
        resolve_command("npx", str(tmp_path), windows=False)


async def test_a_loop_that_cannot_start_processes_is_no_obstacle(monkeypatch, bound):
    async def refuse(*_arguments, **_options):
        raise NotImplementedError

    monkeypatch.setattr(type(anyio.lowlevel.current_token().native_token), "subprocess_exec", refuse)
    with bound(20):
        assert (await prompted(rogue())).text == "hello"
