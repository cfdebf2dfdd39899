"""What the workers on this machine hold, as they tell it themselves."""

import os
import sys
from contextlib import suppress
from typing import Any, Final

import anyio

from acp_integration.backplane.group import KEY_FILE, Group, running_groups
from acp_integration.backplane.protocol import WorkerGone
from acp_integration.backplane.unix import UnixBackplane
from acp_integration.endpoint.hop import Ask, Told, packed, unpacked

TELL_WITHIN: Final = 2.0
"""Seconds that workers have for their answers."""

_LARGEST: Final = 64 * 1024


async def running_workers() -> list[dict[str, Any]]:
    """For each worker that this user's servers run: its ``worker`` name, its ``pid``, and its counters."""
    if sys.platform == "win32":
        return []
    told = []
    for group in running_groups():
        with suppress(OSError):  # a server that has just ended took its directory along
            told += await _asked(group)
    return told


async def _asked(group: Group) -> list[dict[str, Any]]:
    told: dict[str, Told] = {}
    heard = anyio.Event()

    def take(sender: str, message: bytes) -> None:
        answer = unpacked(message) if message else None
        if isinstance(answer, Told):
            told[sender] = answer
            heard.set()

    backplane = UnixBackplane(group, _LARGEST)
    await backplane.start(f"look{os.getpid()}", take)
    try:
        asked = await _ask_all(backplane, group)
        with anyio.move_on_after(TELL_WITHIN):
            while len(told) < asked:
                heard = anyio.Event()
                await heard.wait()
    finally:
        await backplane.aclose()
    return [{"worker": name, "pid": one.pid, **one.counters} for name, one in sorted(told.items())]


async def _ask_all(backplane: UnixBackplane, group: Group) -> int:
    asked = 0
    for path in group.directory.iterdir():
        if path.name in (KEY_FILE, f"look{os.getpid()}"):
            continue
        try:
            await backplane.send(path.name, packed(Ask()))
        except WorkerGone:
            continue
        asked += 1
    return asked
