"""Messages between workers of any number of hosts, through mailboxes in Redis or Valkey."""

import logging
import random
from collections.abc import Callable
from contextlib import suppress
from hashlib import blake2b
from time import monotonic
from typing import Any, Final

import anyio
import msgspec
from anyio.abc import TaskGroup

from acp_integration.backplane.envelopes import Opener, Sealer, proof_of
from acp_integration.backplane.mailbox import BROKEN, LIVES_FOR, Mailbox, Stranger
from acp_integration.backplane.outbox import ENDING, Outbox
from acp_integration.backplane.protocol import OnMessage, WorkerGone
from acp_integration.backplane.reach import Reach, place_of
from acp_integration.errors import ConfigurationError, MissingExtra
from acp_integration.owned import OwnedTask

try:
    from redis.asyncio import Redis
    from redis.asyncio.retry import Retry
    from redis.backoff import NoBackoff
except ImportError as error:
    raise MissingExtra("A backplane over Redis", "redis") from error

logger = logging.getLogger(__name__)

HEARTBEAT: Final = 2.0
"""Seconds between two signs of life."""

BELIEVED_FOR: Final = 1.0
"""Seconds for which a sign of life that was seen is believed without looking again."""

CONNECT_WITHIN: Final = 2.0
ANSWER_WITHIN: Final = 5.0
READ_FOR: Final = 2.0
MAX_PAUSE: Final = 2.0
LOOK_AGAIN_AFTER: Final = 0.1
_FAREWELL: Final = 1.0


class RedisBackplane:
    """Implements `Backplane` with one bounded mailbox for each worker.

    Redis may be away: the worker then serves its own connections, and comes back by itself.

    Args:
        url: where Redis is, as its own client takes it; it may hold a user and a password.
        key: the secret that the workers share.
        max_message_size: the largest message brought or taken, in bytes.

    Raises:
        ConfigurationError: if the URL cannot be used.
    """

    def __init__(self, url: str, key: str, max_message_size: int) -> None:
        self._url = url.replace("valkey", "redis", 1) if url.startswith("valkey") else url
        secret = key.encode()
        self._key = secret if len(secret) <= blake2b.MAX_KEY_SIZE else blake2b(secret).digest()
        self._max_message_size = max_message_size
        self._worker = ""
        self._outboxes: dict[str, Outbox] = {}
        self._task = OwnedTask("acp-backplane")
        self._tasks: TaskGroup | None = None
        self._ready = anyio.Event()
        self._run_id: Any = None
        self._strangers: set[str] = set()
        self._reach = Reach(place_of(url))
        self._redis, self._reading = self._client(ANSWER_WITHIN), self._client(READ_FOR + ANSWER_WITHIN)

    async def start(self, worker: str, on_message: OnMessage) -> None:
        """Take what is in the mailbox, now and whenever Redis can be reached."""
        self._worker, self._on_message = worker, on_message
        self._own, self._opener = self._mailbox(worker, self._reading), Opener(self._key, worker)
        try:
            with anyio.move_on_after(CONNECT_WITHIN):
                await self._mailbox(worker, self._redis).show_life()
                self._reach.found()
        except BROKEN as error:
            self._reach.lost(error)
        self._task.start(self._live)
        await self._ready.wait()

    async def send(self, worker: str, message: bytes) -> None:
        """Put a message into the worker's mailbox, with those that others write at the same time.

        Raises:
            WorkerGone: if it is dead, its mailbox stays full, Redis stays away, or the message is too large.
        """
        if len(message) > self._max_message_size:
            raise WorkerGone(worker, f"a message of {len(message)} bytes is larger than {self._max_message_size}")
        outbox = self._outboxes.get(worker)
        if outbox is None:
            mailbox, sealer = self._mailbox(worker, self._redis), Sealer(self._key, self._worker, worker)
            outbox = self._outboxes[worker] = Outbox(worker, mailbox, sealer, self._reach)
        if self._tasks is None:
            raise WorkerGone(worker, ENDING)
        try:
            await outbox.send(message, self._tasks)
        except WorkerGone:
            # Its numbers go on, so that whoever still reads finds out that something is missing.
            outbox.seen_alive = 0.0
            raise

    async def alive(self, worker: str) -> bool:
        """Whether a worker gave a sign of life; while Redis is away, whether it would still be believed."""
        outbox = self._outboxes.get(worker)
        if outbox is not None and monotonic() - outbox.seen_alive < BELIEVED_FOR:
            return True
        try:
            lives = await self._sees(worker)
        except BROKEN as error:
            self._reach.lost(error)
            return self._reach.away_for < LIVES_FOR
        except Stranger:
            self._note_stranger(worker)
            return False
        if outbox is not None and lives:
            outbox.seen_alive = monotonic()
        if outbox is not None and not lives:
            self._outboxes.pop(worker, None)
        return lives

    def _note_stranger(self, worker: str) -> None:
        if worker not in self._strangers:
            self._strangers.add(worker)
            logger.warning("Worker %s has another acp.agent.backplane.key than this one: set the same for all", worker)

    def _mailbox(self, worker: str, client: "Redis") -> Mailbox:
        return Mailbox(client, worker, proof_of(self._key, worker))

    async def _sees(self, worker: str) -> bool:
        """Look for a sign of life, for as long as the worker may not have found Redis again."""
        mailbox = self._mailbox(worker, self._redis)
        with anyio.move_on_after(LIVES_FOR):
            while not await mailbox.lives():
                if self._reach.settled:
                    return False
                await anyio.sleep(LOOK_AGAIN_AFTER)
            return True
        return False

    async def aclose(self) -> None:
        """Take nothing more, and remove the mailbox."""
        await self._task.stop()
        with anyio.move_on_after(_FAREWELL, shield=True):
            try:
                await self._mailbox(self._worker, self._redis).remove()
            except BROKEN:
                logger.debug("Redis was away at the end: what is there expires by itself")
        for client in (self._redis, self._reading):
            await client.aclose()

    def _client(self, answer_within: float) -> "Redis":
        """A client that is not connected yet."""
        try:
            client: Redis = Redis.from_url(
                self._url,
                protocol=2,
                retry=Retry(NoBackoff(), 0),
                socket_connect_timeout=CONNECT_WITHIN,
                socket_timeout=answer_within,
                client_name="acp-integration",
            )
            make_connection: Callable[[], object] = client.connection_pool.make_connection
            make_connection()  # it is not connected, but its options are looked at
        except (ValueError, TypeError) as error:
            raise ConfigurationError(f"acp.agent.backplane.url cannot be used: {type(error).__name__}") from None
        return client

    async def _live(self) -> None:
        try:
            async with anyio.create_task_group() as self._tasks:
                self._ready.set()
                self._tasks.start_soon(self._show_life)
                await self._read_all()
        finally:
            self._tasks = None
            for outbox in self._outboxes.values():
                outbox.end()

    async def _show_life(self) -> None:
        own, shown = self._mailbox(self._worker, self._redis), monotonic()
        while True:
            began = monotonic()
            try:
                await own.show_life()
            except BROKEN as error:
                self._reach.lost(error)
            else:
                self._reach.found()
                if began - shown > LIVES_FOR:
                    self._lose_all()  # who looked meanwhile has taken this worker for dead
                shown = began
            await anyio.sleep(HEARTBEAT)

    async def _read_all(self) -> None:
        pause = 0.05
        while True:
            try:
                await self._return()
                self._reach.found()
                while True:
                    for sealed in await self._own.take(READ_FOR):
                        self._take(sealed)
                    pause = 0.05
            except BROKEN as error:
                self._reach.lost(error)
            await anyio.sleep(random.uniform(pause / 2, pause))  # noqa: S311  # spreads workers, keeps no secret
            pause = min(2 * pause, MAX_PAUSE)

    async def _return(self) -> None:
        """A Redis that was started anew may have lost messages; who waits for them must not wait for ever."""
        run_id = (await self._reading.info("server")).get("run_id")
        await self._own.show_life()
        self._own.read_again()
        if self._run_id not in (None, run_id):
            self._lose_all()
        self._run_id = run_id

    def _lose_all(self) -> None:
        for worker in {*self._outboxes, *self._opener.senders}:
            self._lose(worker)

    def _lose(self, worker: str) -> None:
        """Something that a worker said may be lost: what waits for it ends, here and there."""
        self._on_message(worker, b"")
        if self._tasks is not None:
            self._tasks.start_soon(self._tell_of_loss, worker)

    async def _tell_of_loss(self, worker: str) -> None:
        with suppress(WorkerGone):
            await self.send(worker, b"")

    def _take(self, sealed: bytes) -> None:
        try:
            envelope = self._opener.open(sealed)
        except (msgspec.DecodeError, PermissionError):
            logger.warning("Skipped a message in the mailbox: nobody with acp.agent.backplane.key wrote it")
            return
        if envelope is None:
            return
        if self._opener.misses(envelope):
            self._lose(envelope.sender)
        self._on_message(envelope.sender, envelope.message)
