"""Ending real processes, with every process they started."""

import os
import signal
import subprocess

REAP_BOUND = 60.0
"""How many seconds a killed process has to be gone."""


def end_group(pid: int) -> None:
    """Kill a process that leads its group, and every process of the group that is still there."""
    try:
        os.killpg(pid, signal.SIGKILL)
    except ProcessLookupError:
        return


def reap(process: subprocess.Popen[bytes]) -> None:
    """End a process that leads its group, wait for it, and close its pipes."""
    end_group(process.pid)
    process.wait(REAP_BOUND)
    for stream in (process.stdin, process.stdout, process.stderr):
        if stream is not None:
            stream.close()
