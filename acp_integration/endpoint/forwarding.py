"""Requests for connections of other workers: each is handed to the worker that holds its connection."""

import itertools
import logging
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from time import perf_counter
from typing import Final

import anyio
from anyio.lowlevel import checkpoint

from acp_integration.backplane.protocol import Backplane, WorkerGone
from acp_integration.caller import Caller
from acp_integration.endpoint import service
from acp_integration.endpoint.eventstream import SHUTTING_DOWN
from acp_integration.endpoint.exchange import Exchange, PeerGone, Refusal
from acp_integration.endpoint.hop import Call, Gone, Part, Taken, packed
from acp_integration.endpoint.negotiation import CONNECTION_HEADER, SESSION_HEADER

logger = logging.getLogger(__name__)

CROSSING: Final = ("content-type", "content-encoding", "accept", "last-event-id", CONNECTION_HEADER, SESSION_HEADER)
"""The headers that cross: those that the answer depends on, and none that proves who is calling."""

MAX_UNTAKEN: Final = 4
"""Parts of one answer that may be here before the peer's server has taken them; a worker sends one at a time."""

_MAX_REPORTED: Final = 256

GONE: Final = "The worker process that held this connection has ended: load the session on a new connection"
"""What a client is told of a connection that ended with its worker."""


class _Forwarded:
    """One request whose answer comes from another worker."""

    def __init__(self, call: int, owner: str) -> None:
        self.id = call
        self.owner = owner
        self.ended = False
        self.lost = False
        self.closing = False
        self._parts: deque[Part] = deque()
        self._changed = anyio.Event()

    def bring(self, part: Part) -> None:
        self._parts.append(part)
        self.lost = self.lost or len(self._parts) > MAX_UNTAKEN
        self._changed.set()

    def lose(self) -> None:
        self.lost = True
        self._changed.set()

    def close(self) -> None:
        self.closing = True
        self._changed.set()

    async def next(self) -> Part | None:
        """The next part; None if the answer ends here because this worker does.

        Raises:
            WorkerGone: if its worker has ended.
        """
        while not self._parts:
            if self.lost:
                raise WorkerGone(self.owner, "it has ended")
            if self.closing:
                return None
            self._changed = anyio.Event()
            await self._changed.wait()
        part = self._parts.popleft()
        self.ended = part.last
        return part


class Forwarder:
    """Hands requests to other workers and their answers to the peers.

    Attributes:
        forwarded: how many requests were handed over.
        waited: how many seconds they waited for the first part of their answers, all together.
    """

    def __init__(self, backplane: Backplane, spawn: Callable[..., None]) -> None:
        self.forwarded = 0
        self.waited = 0.0
        self._backplane = backplane
        self._spawn = spawn
        self._ids = itertools.count(1)
        self._calls: dict[int, _Forwarded] = {}
        self._reported: set[str] = set()

    @property
    def owners(self) -> set[str]:
        """The workers that owe an answer."""
        return {forwarded.owner for forwarded in self._calls.values()}

    async def forward(self, exchange: Exchange, owner: str, caller: Caller, body: bytes = b"") -> None:
        """Answer a request with what the owner of its connection answers.

        Raises:
            Refusal: with status 404 if that worker has ended.
            PeerGone: if the peer hung up.
        """
        if not await self._backplane.alive(owner):
            raise self._owner_gone(owner)
        headers = [(name, value) for name in CROSSING if (value := exchange.header(name)) is not None]
        forwarded = _Forwarded(next(self._ids), owner)
        self._calls[forwarded.id] = forwarded
        try:
            call = Call(forwarded.id, exchange.method, caller.principal, headers, body)
            await self._backplane.send(owner, packed(call))
            await exchange.unless_gone(partial(self._relay, exchange, forwarded))
        except WorkerGone:
            if not exchange.answered:
                raise self._owner_gone(owner) from None
            with suppress(Exception):  # each server has its own error for a peer that left
                await exchange.write(b"", last=True)
        finally:
            del self._calls[forwarded.id]
            if not forwarded.ended:
                self._spawn(self.tell, owner, packed(Gone(forwarded.id)))

    def bring(self, sender: str, part: Part) -> None:
        """Take a part of an answer."""
        forwarded = self._calls.get(part.id)
        if forwarded is not None and forwarded.owner == sender:
            forwarded.bring(part)

    def lose(self, worker: str) -> None:
        """A worker has ended, or something that it said was lost: what it owes will not come."""
        for forwarded in self._calls.values():
            if forwarded.owner == worker:
                forwarded.lose()

    def close(self) -> None:
        """End the answers that would last; those that are about to come may still come."""
        for forwarded in self._calls.values():
            forwarded.close()

    async def _relay(self, exchange: Exchange, forwarded: _Forwarded) -> None:
        began = perf_counter()
        part = await forwarded.next()
        self.forwarded += 1
        self.waited += perf_counter() - began
        if part is None:
            raise Refusal(503, service.SHUTTING_DOWN)
        await exchange.start(part.status, part.headers)
        while part is not None:
            await self._hand_over(exchange, part)
            if part.last:
                return
            await self._backplane.send(forwarded.owner, packed(Taken(forwarded.id)))
            part = await forwarded.next()
        await exchange.write(SHUTTING_DOWN, last=True)

    async def _hand_over(self, exchange: Exchange, part: Part) -> None:
        try:
            await exchange.write(part.body, last=part.last)
        except Exception:
            logger.debug("A peer left while its answer was written", exc_info=True)
            raise PeerGone from None
        # A server drops what is sent after the peer hung up: let whoever watches for that see it first.
        await checkpoint()

    async def tell(self, worker: str, message: bytes) -> None:
        """Say something to a worker, if it is still there."""
        with suppress(WorkerGone):
            await self._backplane.send(worker, message)

    def _owner_gone(self, owner: str) -> Refusal:
        if owner not in self._reported:
            if len(self._reported) >= _MAX_REPORTED:
                self._reported.clear()
            self._reported.add(owner)
            logger.warning("Worker %s has ended, or does not answer: its connections are unknown now", owner)
        return Refusal(404, GONE)
