"""Messages between workers of any number of hosts, through mailboxes in Redis or Valkey."""

import logging
import random
from collections.abc import Callable
from contextlib import suppress
from time import monotonic
from typing import Any, Final

import anyio
import msgspec

from acp_integration.backplane.envelopes import Opener, Sealer
from acp_integration.backplane.mailbox import DEAD, LIVES_FOR, Mailbox
from acp_integration.backplane.protocol import OnMessage, WorkerGone
from acp_integration.backplane.reach import Reach
from acp_integration.errors import ConfigurationError, MissingExtra
from acp_integration.owned import OwnedTask

try:
    from redis.asyncio import Redis
    from redis.asyncio.retry import Retry
    from redis.backoff import NoBackoff
    from redis.exceptions import RedisError
except ImportError as error:
    raise MissingExtra("A backplane over Redis", "redis") from error

logger = logging.getLogger(__name__)

HEARTBEAT: Final = 2.0
"""Seconds between two signs of life."""

SEND_WITHIN: Final = 10.0
"""Seconds for which a mailbox may be full, or Redis away, while a message waits for it."""

BELIEVED_FOR: Final = 1.0
"""Seconds for which a sign of life that was seen is believed without looking again."""

CONNECT_WITHIN: Final = 2.0
ANSWER_WITHIN: Final = 5.0
READ_FOR: Final = 2.0
MAX_PAUSE: Final = 2.0
LOOK_AGAIN_AFTER: Final = 0.1
_FAREWELL: Final = 1.0
_BROKEN: Final = (RedisError, OSError)


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
        self._key = key.encode()[:64]
        self._max_message_size = max_message_size
        self._worker = ""
        self._outboxes: dict[str, _Outbox] = {}
        self._task = OwnedTask("acp-backplane")
        self._run_id: Any = None
        self._reach = Reach()
        self._redis, self._reading = self._client(ANSWER_WITHIN), self._client(READ_FOR + ANSWER_WITHIN)

    async def start(self, worker: str, on_message: OnMessage) -> None:
        """Take what is in the mailbox, now and whenever Redis can be reached."""
        self._worker, self._on_message = worker, on_message
        self._own, self._opener = Mailbox(self._reading, worker), Opener(self._key, worker)
        try:
            with anyio.move_on_after(CONNECT_WITHIN):
                await Mailbox(self._redis, worker).show_life()
                self._reach.found()
        except _BROKEN as error:
            self._reach.lost(error)
        self._task.start(self._live)

    async def send(self, worker: str, message: bytes) -> None:
        """Put a message into the worker's mailbox, with those that others write at the same time.

        Raises:
            WorkerGone: if it is dead, its mailbox stays full, Redis stays away, or the message is too large.
        """
        if len(message) > self._max_message_size:
            raise WorkerGone(worker, f"a message of {len(message)} bytes is larger than {self._max_message_size}")
        outbox = self._outboxes.get(worker)
        if outbox is None:
            mailbox, sealer = Mailbox(self._redis, worker), Sealer(self._key, self._worker, worker)
            outbox = self._outboxes[worker] = _Outbox(worker, mailbox, sealer, self._reach)
        try:
            await outbox.send(message)
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
        except _BROKEN as error:
            self._reach.lost(error)
            return self._reach.away_for < LIVES_FOR
        if outbox is not None and lives:
            outbox.seen_alive = monotonic()
        if outbox is not None and not lives:
            self._outboxes.pop(worker, None)
        return lives

    async def _sees(self, worker: str) -> bool:
        """Look for a sign of life, for as long as the worker may not have found Redis again."""
        mailbox = Mailbox(self._redis, worker)
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
                await Mailbox(self._redis, self._worker).remove()
            except _BROKEN:
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
        async with anyio.create_task_group() as self._tasks:
            self._tasks.start_soon(self._show_life)
            await self._read_all()

    async def _show_life(self) -> None:
        own, shown = Mailbox(self._redis, self._worker), monotonic()
        while True:
            began = monotonic()
            try:
                await own.show_life()
            except _BROKEN as error:
                self._reach.lost(error)
            else:
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
            except _BROKEN as error:
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


class _Outbox:
    """What one worker writes to another, in order: whoever writes takes along what others wrote meanwhile."""

    def __init__(self, worker: str, mailbox: Mailbox, sealer: Sealer, reach: Reach) -> None:
        self.seen_alive = 0.0
        self._worker = worker
        self._mailbox = mailbox
        self._sealer = sealer
        self._reach = reach
        self._waiting: list[_Letter] = []
        self._writing = anyio.Lock()

    async def send(self, message: bytes) -> None:
        letter = _Letter(self._sealer.seal(message))
        self._waiting.append(letter)
        async with self._writing:
            if not letter.sent and letter.failure is None:
                # Whoever is cancelled while writing for others would leave them in doubt.
                with anyio.CancelScope(shield=True):
                    await self._write_all()
        if letter.failure is not None:
            raise WorkerGone(self._worker, letter.failure)

    async def _write_all(self) -> None:
        letters, self._waiting = self._waiting, []
        failure = await self._write([letter.sealed for letter in letters])
        for letter in letters:
            letter.sent, letter.failure = failure is None, failure

    async def _write(self, sealed: list[bytes]) -> str | None:
        """Write them all, as often as it takes: a reader knows what it has read. Says why it did not succeed."""
        failure, pause = "Redis is away", 0.005
        with anyio.move_on_after(SEND_WITHIN):
            while True:
                try:
                    taken = await self._mailbox.put(sealed)
                except _BROKEN as error:
                    self._reach.lost(error)
                    failure = "Redis is away"
                else:
                    failure = "it has ended" if taken == DEAD else "its mailbox is full"
                    if taken == DEAD and self._reach.settled:
                        return failure
                    if taken != DEAD:
                        self.seen_alive = monotonic()
                        sealed = sealed[taken:]
                    if not sealed:
                        return None
                await anyio.sleep(pause)
                pause = min(2 * pause, 0.5)
        return failure


class _Letter:
    """A message on its way into a mailbox."""

    def __init__(self, sealed: bytes) -> None:
        self.sealed = sealed
        self.sent = False
        self.failure: str | None = None
