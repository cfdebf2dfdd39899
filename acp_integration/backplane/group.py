"""Which worker processes belong together: those that one server process made, and nobody else's."""

import logging
import multiprocessing
import os
import secrets
import stat
import subprocess
import sys
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Final, NamedTuple

from acp_integration.errors import ConfigurationError

logger = logging.getLogger(__name__)

KEY_FILE: Final = "key"
_KEY_BYTES: Final = 32
_START_FIELD: Final = 19
"""The place of a process' start time in ``/proc/<pid>/stat``, counted from behind its name."""

_MAX_DIRECTORY: Final = 84
"""The longest directory whose sockets can still be named: about 104 bytes are the limit of a whole path."""


class Group(NamedTuple):
    """Where the workers of a group meet, and the secret by which they know each other."""

    directory: Path
    key: bytes


def own_group() -> Group | None:
    """The group of this process, made by whichever worker comes first; None if it is no worker of a server.

    Raises:
        OSError: if there is no place for it.
        ConfigurationError: if its place belongs to somebody else.
    """
    server = server_process()
    started = None if server is None else start_time(server)
    if started is None:
        return None
    directory = _place(f"{server}.{started}")
    remove_dead_groups(directory.parent)
    return join(directory)


def join(directory: Path) -> Group:
    """Become part of the group that meets in a directory.

    Raises:
        OSError: if the directory cannot be made or read.
        ConfigurationError: if it belongs to somebody else, others may enter it, or its path is too long for sockets.
    """
    if not _can_hold_sockets(directory):
        raise ConfigurationError(f"{directory} has too long a path for sockets: {_MAX_DIRECTORY} bytes are the most")
    return Group(private(directory), _shared_key(directory / KEY_FILE))


def running_groups() -> list[Group]:
    """The groups of this user whose server process runs on this machine."""
    groups = []
    for directory in _homes():
        with suppress(OSError, ConfigurationError):
            remove_dead_groups(directory)
            groups += [join(path) for path in directory.iterdir() if (path / KEY_FILE).exists()]
    return groups


def server_process() -> int | None:
    """The process that made this one to share its work; None if this one was started by itself.

    Servers make their workers with multiprocessing; gunicorn forks them.
    """
    parent = multiprocessing.parent_process()
    if parent is not None:
        return parent.pid
    return os.getppid() if "gunicorn.arbiter" in sys.modules else None


def start_time(pid: int) -> str | None:
    """When a process started, in the system's own words; with its id it names one process for ever."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text("latin-1").rpartition(")")[2].split()
    except OSError:
        return _told_start_time(pid)
    return fields[_START_FIELD]


def private(directory: Path) -> Path:
    """The directory, made if need be, that nobody but this user can enter.

    Raises:
        OSError: if it cannot be made.
        ConfigurationError: if it belongs to somebody else, or others may enter it.
    """
    with suppress(FileExistsError):
        directory.mkdir(mode=0o700, parents=True)
    found = directory.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid() or found.st_mode & 0o077:
        raise ConfigurationError(
            f"{directory} must be a directory that only this user can enter (chmod 700): workers meet there"
        )
    return directory


def remove_dead_groups(home: Path) -> None:
    """Remove what groups left behind whose server process is no more."""
    for directory in home.iterdir():
        pid, _, started = directory.name.partition(".")
        if pid.isdecimal() and started and start_time(int(pid)) != started:
            _remove(directory)


def _remove(directory: Path) -> None:
    with suppress(OSError):  # another worker may be removing it too
        for entry in directory.iterdir():
            entry.unlink()
        directory.rmdir()


def _place(name: str) -> Path:
    for home in _homes():
        if os.access(home.parent, os.W_OK) and _can_hold_sockets(home / name):
            return private(home) / name
    raise OSError("there is no directory for the sockets of workers: set XDG_RUNTIME_DIR")


def _homes() -> list[Path]:
    bases = [os.environ.get("XDG_RUNTIME_DIR"), tempfile.gettempdir(), "/tmp"]  # noqa: S108  # only what is private
    return [Path(base) / f"acp-{os.geteuid()}{_container()}" for base in dict.fromkeys(bases) if base]


def _container() -> str:
    """What tells process ids from those of a container that may share our temporary directory."""
    try:
        return f"-{Path('/proc/self/ns/pid').stat().st_ino:x}"
    except OSError:
        return ""


def _can_hold_sockets(directory: Path) -> bool:
    return len(os.fsencode(directory)) <= _MAX_DIRECTORY


def _shared_key(file: Path) -> bytes:
    """The key of the group; whoever comes first makes it, whole or not at all."""
    mine = file.with_name(f"{KEY_FILE}.{os.getpid()}.{secrets.token_hex(4)}")
    with os.fdopen(os.open(mine, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as stream:
        stream.write(secrets.token_bytes(_KEY_BYTES))
    try:
        with suppress(FileExistsError):
            os.link(mine, file)
    finally:
        mine.unlink()
    return file.read_bytes()


def _told_start_time(pid: int) -> str | None:
    """What ``ps`` says where there is no ``/proc``."""
    command = ["ps", "-o", "lstart=", "-p", str(pid)]
    try:
        told = subprocess.run(command, capture_output=True, text=True, timeout=5, check=True)  # noqa: S603  # no input
    except (OSError, subprocess.SubprocessError):
        return None
    return "".join(told.stdout.split()).replace("/", "") or None
