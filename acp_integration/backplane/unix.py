"""Messages between the workers of one host, over Unix sockets that only this user can reach."""

import asyncio
import logging
import os
import secrets
import socket
from contextlib import suppress
from contextvars import Context
from pathlib import Path
from typing import Final

import anyio
from anyio.abc import TaskGroup

from acp_integration.backplane.framing import LENGTH_BYTES, TAG_BYTES, Forged, Seal
from acp_integration.backplane.group import KEY_FILE, Group
from acp_integration.backplane.link import NONCE_BYTES, PONG, Link, purpose
from acp_integration.backplane.protocol import OnMessage, WorkerGone
from acp_integration.owned import OwnedTask

logger = logging.getLogger(__name__)

HELLO_WITHIN: Final = 5.0
"""Seconds that whoever connects has to say who it is."""

SHOW_USE_EVERY: Final = 3600.0
"""Seconds between two signs that the socket and the key are in use."""

_MAX_NAME: Final = 64
_BACKLOG: Final = 128
_RETRY_ACCEPT_AFTER: Final = 0.5


class UnixBackplane:
    """Implements `Backplane`: every worker listens on a socket in the group's directory, named like itself.

    Args:
        group: where the workers meet and the secret they share.
        max_message_size: the largest message taken, in bytes.
    """

    def __init__(self, group: Group, max_message_size: int) -> None:
        self._group = group
        self._max_message_size = max_message_size
        self._worker = ""
        self._links: dict[str, Link] = {}
        self._connecting: dict[str, anyio.Event] = {}
        self._heard: dict[str, int] = {}
        self._task = OwnedTask("acp-backplane")
        self._tasks: TaskGroup | None = None
        self._ready = anyio.Event()

    async def start(self, worker: str, on_message: OnMessage) -> None:
        """Listen on the worker's socket.

        Raises:
            OSError: if there can be no socket.
        """
        self._worker, self._on_message = worker, on_message
        _remove_stale_sockets(self._group.directory)
        listener = _listen(self._group.directory / worker)
        self._task.start(lambda: self._live(listener))
        await self._ready.wait()

    async def send(self, worker: str, message: bytes) -> None:
        """Write a message to the worker's socket, and wait while it is far behind.

        Raises:
            WorkerGone: if nobody listens there, nothing is taken for too long, or the message is too large.
        """
        if len(message) > self._max_message_size:
            raise WorkerGone(worker, f"a message of {len(message)} bytes is larger than {self._max_message_size}")
        await (await self._link(worker)).send(message)

    async def alive(self, worker: str) -> bool:
        """Whether a worker listens and answers."""
        try:
            return await (await self._link(worker)).answers()
        except WorkerGone:
            return False

    async def aclose(self) -> None:
        """Close every connection and remove the socket."""
        await self._task.stop()

    async def _live(self, listener: socket.socket) -> None:
        try:
            with listener:
                async with anyio.create_task_group() as self._tasks:
                    self._ready.set()
                    self._tasks.start_soon(self._keep)
                    await self._accept_all(listener, self._tasks)
        finally:
            self._tasks = None
            (self._group.directory / self._worker).unlink(missing_ok=True)

    async def _keep(self) -> None:
        """Show from time to time that the files are used: what cleans temporary directories removes old ones."""
        while True:
            await anyio.sleep(SHOW_USE_EVERY)
            for path in (self._group.directory / KEY_FILE, self._group.directory / self._worker):
                with suppress(OSError):
                    os.utime(path)

    async def _accept_all(self, listener: socket.socket, tasks: TaskGroup) -> None:
        while True:
            try:
                accepted, _ = await asyncio.get_running_loop().sock_accept(listener)
            except OSError as error:
                logger.warning("A worker could not be let in: %s", error)
                await anyio.sleep(_RETRY_ACCEPT_AFTER)
            else:
                tasks.start_soon(self._receive, accepted)

    async def _receive(self, accepted: socket.socket) -> None:
        reader, writer = await asyncio.open_unix_connection(sock=accepted)
        try:
            await self._take_all(reader, writer)
        except (OSError, EOFError, TimeoutError):
            logger.debug("A worker hung up")
        except Forged:
            logger.warning("Refused a connection to this worker: it does not hold the key of the group")
        finally:
            writer.close()

    async def _take_all(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonce = secrets.token_bytes(NONCE_BYTES)
        writer.write(nonce)
        with anyio.fail_after(HELLO_WITHIN):
            sender = (await self._take(reader, _MAX_NAME)).decode("ascii", "replace")
            seal = Seal(self._group.key, purpose(sender, self._worker, nonce))
            seal.open(await self._take(reader, TAG_BYTES))
        self._heard[sender] = self._heard.get(sender, 0) + 1
        try:
            while True:
                message = seal.open(await self._take(reader, self._max_message_size + TAG_BYTES))
                if message:
                    self._on_message(sender, message)
                else:
                    writer.write(PONG)
        finally:
            self._heard[sender] -= 1
            if not self._heard[sender]:
                del self._heard[sender]
            self._hang_up_on(sender)
            self._on_message(sender, b"")

    async def _take(self, reader: asyncio.StreamReader, limit: int) -> bytes:
        length = int.from_bytes(await reader.readexactly(LENGTH_BYTES), "big")
        if length > limit:
            raise Forged
        return await reader.readexactly(length)

    async def _link(self, worker: str) -> Link:
        link = self._links.get(worker)
        if link is not None:
            return link
        if self._tasks is None or not worker.isalnum():
            raise WorkerGone(worker, "there is no such worker here")
        connecting = self._connecting.get(worker)
        if connecting is None:
            connecting = self._connecting[worker] = anyio.Event()
            # A connection outlives the request that needs it first, so it must not see its context variables.
            Context().run(self._connect, self._tasks, worker, connecting)
        await connecting.wait()
        link = self._links.get(worker)
        if link is None:
            raise WorkerGone(worker, "it has ended, or does not answer")
        return link

    def _connect(self, tasks: TaskGroup, worker: str, connecting: anyio.Event) -> None:
        tasks.start_soon(self._hold, worker, connecting)

    async def _hold(self, worker: str, connecting: anyio.Event) -> None:
        try:
            link = self._links[worker] = await Link.connect(self._group, self._worker, worker)
        except WorkerGone:
            return
        finally:
            del self._connecting[worker]
            connecting.set()
        try:
            await link.watch()
        finally:
            self._let_go(link)

    def _let_go(self, link: Link) -> None:
        if self._links.get(link.worker) is not link:
            return
        del self._links[link.worker]
        # What it still wrote is on its own connection to us; the end of that one tells that it is all.
        if link.worker not in self._heard:
            self._on_message(link.worker, b"")

    def _hang_up_on(self, worker: str) -> None:
        """End our own connection to a worker whose connection has ended: it learns that something may be lost."""
        link = self._links.pop(worker, None)
        if link is not None:
            link.close()


def check_sockets(directory: Path) -> None:
    """See that there can be sockets in a directory: not every file system has them.

    Raises:
        OSError: if there can be none.
    """
    path = directory / f"try{os.getpid()}"
    _listen(path).close()
    path.unlink(missing_ok=True)


def _listen(path: Path) -> socket.socket:
    """A socket under its name; it gets the name once it listens, so that whoever sees it can connect."""
    temporary = path.with_name(f"{path.name}.new")
    temporary.unlink(missing_ok=True)
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        listener.settimeout(0)
        listener.bind(str(temporary))
        listener.listen(_BACKLOG)
        temporary.rename(path)
    except BaseException:
        listener.close()
        raise
    return listener


def _remove_stale_sockets(directory: Path) -> None:
    """Remove the sockets of workers that were killed."""
    for path in directory.iterdir():
        if path.is_socket() and path.suffix != ".new" and not _is_listening(path):
            path.unlink(missing_ok=True)


def _is_listening(path: Path) -> bool:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.settimeout(0)
        with suppress(BlockingIOError):  # its queue is full: somebody is there
            try:
                probe.connect(str(path))
            except (ConnectionRefusedError, FileNotFoundError):
                return False
    return True
