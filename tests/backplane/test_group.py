"""Workers of one server process meet, and nobody else."""

import json
import os
import stat
import subprocess
import sys

import pytest

from acp_integration.backplane import group
from acp_integration.backplane.unix import UnixBackplane
from acp_integration.errors import ConfigurationError

OWN_GROUP = "import json; from acp_integration.backplane.group import own_group; found = own_group(); "
TELL = "import os; os.write(1, json.dumps(found and [str(found.directory), found.key.hex()]).encode() + b'\\n')"
IN_WORKERS = f"""
import multiprocessing, sys

def tell():
    {OWN_GROUP}{TELL}

if __name__ == "__main__":
    context = multiprocessing.get_context(sys.argv[1])
    workers = [context.Process(target=tell) for _ in range(3)]
    for worker in workers: worker.start()
    for worker in workers: worker.join()
"""


@pytest.fixture
def home(meeting_place, monkeypatch):
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(meeting_place))
    return meeting_place


def told(finished):
    assert finished.returncode == 0, finished.stderr
    return [json.loads(line) for line in finished.stdout.splitlines()]


def test_a_process_that_was_started_by_itself_is_in_no_group(home, run_python):
    assert told(run_python("-c", OWN_GROUP + TELL)) == [None]
    assert not [*home.iterdir()]


@pytest.mark.parametrize("method", ["spawn", "fork", "forkserver"])
def test_the_workers_of_one_process_meet_and_those_of_another_do_not(home, run_python, tmp_path, repo_root, method):
    script = tmp_path / "server.py"
    script.write_text(IN_WORKERS)
    environ = {**os.environ, "PYTHONPATH": str(repo_root)}
    first, second = (told(run_python(script, method, env=environ)) for _ in range(2))
    assert len(first) == len(second) == 3
    assert first[0] == first[1] == first[2]
    assert second[0] == second[1] == second[2]
    assert first[0][0] != second[0][0]
    assert first[0][1] != second[0][1]


def test_the_place_is_only_for_this_user(home, monkeypatch):
    monkeypatch.setattr(group, "server_process", os.getpid)
    found = group.own_group()
    for path in (found.directory, found.directory.parent):
        assert stat.S_IMODE(path.stat().st_mode) == 0o700
    assert stat.S_IMODE((found.directory / group.KEY_FILE).stat().st_mode) == 0o600
    assert [path.name for path in found.directory.iterdir()] == [group.KEY_FILE]


def test_what_a_dead_server_left_behind_is_removed(home, monkeypatch):
    monkeypatch.setattr(group, "server_process", os.getpid)
    root = group.own_group().directory.parent
    dead = subprocess.Popen([sys.executable, "-c", ""])
    dead.wait()
    for name in (f"{dead.pid}.1", f"{os.getpid()}.1"):  # one that has ended, one whose number was given out again
        (root / name).mkdir()
        (root / name / group.KEY_FILE).write_bytes(b"x")
    (root / "somebody-elses").mkdir()
    own = group.own_group().directory
    assert {path.name for path in root.iterdir()} == {own.name, "somebody-elses"}


def test_a_place_that_others_can_enter_is_refused(meeting_place):
    meeting_place.chmod(0o750)
    with pytest.raises(ConfigurationError, match="only this user can enter"):
        group.join(meeting_place)


def test_a_place_that_is_a_link_is_refused(meeting_place):
    (meeting_place / "real").mkdir(mode=0o700)
    (meeting_place / "link").symlink_to("real")
    with pytest.raises(ConfigurationError, match="only this user can enter"):
        group.join(meeting_place / "link")


def test_a_place_of_another_user_is_refused(meeting_place, monkeypatch):
    monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 1)
    with pytest.raises(ConfigurationError, match="only this user can enter"):
        group.join(meeting_place)


def test_who_comes_later_reads_the_key_of_who_came_first(meeting_place):
    assert group.join(meeting_place) == group.join(meeting_place)
    assert len(group.join(meeting_place).key) == 32


def test_without_proc_the_start_is_what_ps_says(monkeypatch):
    monkeypatch.setattr(group.Path, "read_text", lambda *_: (_ for _ in ()).throw(FileNotFoundError()))
    first = group.start_time(os.getpid())
    assert first
    assert first.isalnum() or ":" in first
    assert first == group.start_time(os.getpid())


def test_a_process_that_is_gone_has_no_start():
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    assert group.start_time(gone.pid) is None


def test_a_place_whose_path_is_too_long_for_sockets_is_passed_over(home, monkeypatch):
    long = home / ("x" * 60)
    long.mkdir(mode=0o700)
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(long))
    monkeypatch.setattr(group.tempfile, "gettempdir", lambda: str(home))
    monkeypatch.setattr(group, "server_process", os.getpid)
    assert group.own_group().directory.parent.parent == home
    assert not [*long.iterdir()]


def test_a_named_place_whose_path_is_too_long_for_sockets_is_refused(home):
    with pytest.raises(ConfigurationError, match="too long a path for sockets"):
        group.join(home / ("x" * 80))
    assert not [*home.iterdir()]


async def test_the_longest_place_can_hold_sockets(home):
    name = "x" * (group._MAX_DIRECTORY - len(os.fsencode(home)) - 1)
    backplane = UnixBackplane(group.join(home / name), 1000)
    await backplane.start("0123456789ab", lambda *_: None)
    await backplane.aclose()


def test_a_container_that_shares_the_directory_leaves_our_groups_alone(home, monkeypatch):
    monkeypatch.setattr(group, "server_process", os.getpid)
    ours = group.own_group().directory
    monkeypatch.setattr(group, "_container", lambda: "-1")
    monkeypatch.setattr(group, "start_time", lambda pid: "1")
    theirs = group.own_group().directory
    assert ours.is_dir()
    assert ours.parent != theirs.parent
