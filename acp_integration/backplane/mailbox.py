"""The mailbox of one worker in Redis: a stream with a bound, and a sign of life that fades."""

from collections.abc import Sequence
from hmac import compare_digest
from typing import Any, Final

from acp_integration.errors import MissingExtra

try:
    from redis.asyncio import Redis
    from redis.exceptions import RedisError
except ImportError as error:
    raise MissingExtra("A backplane over Redis", "redis") from error

PREFIX: Final = "acp"

LIVES_FOR: Final = 6.0
"""Seconds after which a worker that gave no sign of life is taken for dead."""

KEPT_FOR: Final = 60.0
"""Seconds that a mailbox is kept after the last message came."""

MAX_MESSAGES: Final = 1000
MAX_BYTES: Final = 128 * 1024 * 1024
BATCH: Final = 64
_REMOVED_AT: Final = 1024 * 1024

BROKEN: Final = (RedisError, OSError)
"""What a call raises while Redis cannot be used."""

DEAD: Final = -1
"""What `put` answers for a worker that gives no sign of life."""

_PUT: Final = """
if redis.call('EXISTS', KEYS[1]) == 0 then return -1 end
local taken = 0
for index = 4, #ARGV do
  local held = tonumber(redis.call('GET', KEYS[3]) or '0')
  local count = redis.call('XLEN', KEYS[2])
  if count >= tonumber(ARGV[1]) or (count > 0 and held + #ARGV[index] > tonumber(ARGV[2])) then break end
  redis.call('XADD', KEYS[2], '*', 'm', ARGV[index])
  redis.call('INCRBY', KEYS[3], #ARGV[index])
  taken = taken + 1
end
redis.call('PEXPIRE', KEYS[2], ARGV[3])
redis.call('PEXPIRE', KEYS[3], ARGV[3])
return taken
"""

_REMOVE: Final = """
for index = 1, #ARGV, 2 do
  if redis.call('XDEL', KEYS[1], ARGV[index]) == 1 then redis.call('DECRBY', KEYS[2], ARGV[index + 1]) end
end
if redis.call('XLEN', KEYS[1]) == 0 then redis.call('DEL', KEYS[2]) end
return 0
"""


class Stranger(Exception):
    """A worker lives that does not hold the key."""


class Mailbox:
    """Puts messages into the mailbox of a worker, or takes them out; every call may raise what the client raises.

    Args:
        redis: the connection to use.
        worker: whose mailbox it is.
        proof: what its sign of life says: that it holds the key.
    """

    def __init__(self, redis: "Redis", worker: str, proof: bytes) -> None:
        self._redis = redis
        self._proof = proof
        # The braces keep the keys of a worker together where many servers share them.
        self._alive, self._box, self._size = (f"{PREFIX}:{{{worker}}}:{part}" for part in ("alive", "box", "bytes"))
        self._put = redis.register_script(_PUT)
        self._remove = redis.register_script(_REMOVE)
        self._last = "0-0"
        self._taken: list[tuple[bytes, int]] = []

    async def put(self, messages: Sequence[bytes]) -> int:
        """Put as many in as there is room for, and say how many; `DEAD` if nobody will read them."""
        bounds = (MAX_MESSAGES, MAX_BYTES, int(KEPT_FOR * 1000))
        return int(await self._put(keys=[self._alive, self._box, self._size], args=[*bounds, *messages]))

    async def take(self, wait: float) -> list[bytes]:
        """The next messages, none if none came in so many seconds; those taken before are removed now and then."""
        if len(self._taken) >= BATCH or sum(size for _, size in self._taken) >= _REMOVED_AT:
            await self._forget()
        read: Any = await self._redis.xread({self._box: self._last}, count=BATCH, block=int(wait * 1000))
        entries: list[tuple[bytes, dict[bytes, bytes]]] = read[0][1] if read else []
        messages = [fields[b"m"] for _, fields in entries]
        self._taken += [(identifier, len(fields[b"m"])) for identifier, fields in entries]
        if entries:
            self._last = entries[-1][0].decode()
        else:
            await self._forget()
        return messages

    def read_again(self) -> None:
        """Begin with the oldest message that is there: Redis may have another clock now, or a copy of the mailbox."""
        self._last = "0-0"

    async def show_life(self) -> None:
        """Say that the worker lives."""
        await self._redis.set(self._alive, self._proof, px=int(LIVES_FOR * 1000))

    async def lives(self) -> bool:
        """Whether the worker has said so lately.

        Raises:
            Stranger: if it does not hold the key: it would hear nothing that is written to it.
        """
        said: Any = await self._redis.get(self._alive)
        if said is not None and not compare_digest(said, self._proof):
            raise Stranger
        return said is not None

    async def remove(self) -> None:
        """Remove everything."""
        await self._redis.delete(self._alive, self._box, self._size)

    async def _forget(self) -> None:
        if self._taken:
            arguments: list[Any] = [value for entry in self._taken for value in entry]
            await self._remove(keys=[self._box, self._size], args=arguments)
            self._taken = []
