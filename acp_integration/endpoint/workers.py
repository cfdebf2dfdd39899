"""The other workers that serve the same agent, and what is exchanged with them."""

import logging
import os
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from contextvars import Context
from typing import Any, Final

import anyio
import msgspec
from anyio.abc import TaskGroup

from acp_integration.backplane.opening import Opener
from acp_integration.backplane.protocol import Backplane
from acp_integration.caller import Caller
from acp_integration.endpoint.exchange import Exchange
from acp_integration.endpoint.forwarded import Answer, ForwardedRequests
from acp_integration.endpoint.forwarding import Forwarder
from acp_integration.endpoint.hop import Ask, Call, Gone, Hop, Part, Taken, Told, packed, unpacked
from acp_integration.errors import ConfigurationError

logger = logging.getLogger(__name__)

LOOK_AGAIN_AFTER: Final = 2.0
"""Seconds after which a worker with whom something is open is asked again whether it lives."""


class Workers:
    """Knows, once joined, how to reach the workers that share connections with this one.

    Args:
        worker: the name of this one.
        open_backplane: makes what carries the messages; None of it, and this worker stands alone.
        answer: answers a request that another worker has let in.
        counters: what this worker holds, for whoever asks.
        max_connections: how many connections it may hold.
    """

    def __init__(
        self,
        worker: str,
        open_backplane: Opener,
        answer: Answer,
        counters: Callable[[], dict[str, float]],
        max_connections: int,
    ) -> None:
        self._worker = worker
        self._max_connections = max_connections
        self._open = open_backplane
        self._answer = answer
        self._counters = counters
        self._tasks: TaskGroup | None = None
        self._forwarder: Forwarder | None = None
        self._forwarded: ForwardedRequests | None = None

    def counters(self) -> Mapping[str, float]:
        """What was exchanged so far: requests, and seconds until the first part of an answer was here."""
        forwarder, forwarded = self._forwarder, self._forwarded
        return {
            "forwarded_requests": 0 if forwarder is None else forwarder.forwarded,
            "forwarded_seconds": 0.0 if forwarder is None else forwarder.waited,
            "answered_for_workers": 0 if forwarded is None else forwarded.answered,
        }

    async def forward(self, exchange: Exchange, owner: str, caller: Caller, body: bytes) -> bool:
        """Answer a request with what the owner of its connection answers; says no if this worker stands alone.

        Raises:
            Refusal: with status 404 if that worker has ended.
            PeerGone: if the peer hung up.
        """
        if self._forwarder is None:
            return False
        await self._forwarder.forward(exchange, owner, caller, body)
        return True

    def close(self) -> None:
        """End the answers of other workers that would last."""
        if self._forwarder is not None:
            self._forwarder.close()

    @asynccontextmanager
    async def joined(self) -> AsyncIterator[None]:
        """Exchange requests with the others inside this context.

        Raises:
            ConfigurationError, OSError: if what was asked for cannot carry messages.
        """
        backplane = self._open()
        if backplane is None:
            yield
            return
        self._forwarder = Forwarder(backplane, self._spawn)
        self._forwarded = ForwardedRequests(backplane, self._spawn, self._answer, self._max_connections)
        failure: Exception | None = None
        try:
            async with anyio.create_task_group() as self._tasks:
                try:
                    await backplane.start(self._worker, self._received)
                except (ConfigurationError, OSError) as error:
                    failure = error  # raised below, where no task group wraps it
                else:
                    self._tasks.start_soon(self._watch, backplane)
                    yield
                self._tasks.cancel_scope.cancel()
            if failure is not None:
                raise failure
        finally:
            self._forwarder = None
            with anyio.CancelScope(shield=True):
                await backplane.aclose()

    def _received(self, sender: str, message: bytes) -> None:
        if not message:
            self._lose(sender)
            return
        try:
            hop = unpacked(message)
        except msgspec.DecodeError:
            logger.warning("Skipped a message of worker %s that means nothing here: is it of the same release?", sender)
            return
        self._take(sender, hop)

    def _take(self, sender: str, hop: Hop) -> None:
        if self._forwarder is None or self._forwarded is None:
            return
        match hop:
            case Call():
                self._forwarded.begin(sender, hop)
            case Taken():
                self._forwarded.take(sender, hop.id)
            case Gone():
                self._forwarded.leave(sender, hop.id)
            case Part():
                self._forwarder.bring(sender, hop)
            case Ask():
                self._spawn(self._forwarder.tell, sender, packed(Told(os.getpid(), self._counters())))

    def _lose(self, worker: str) -> None:
        if self._forwarder is not None:
            self._forwarder.lose(worker)
        if self._forwarded is not None:
            self._forwarded.lose(worker)

    def _spawn(self, function: Callable[..., Any], *arguments: Any) -> None:
        """Run something of no request in particular."""
        if (tasks := self._tasks) is not None:
            Context().run(_start, tasks, function, *arguments)

    async def _watch(self, backplane: Backplane) -> None:
        """Notice the end of a worker that could not say so."""
        while True:
            await anyio.sleep(LOOK_AGAIN_AFTER)
            if self._forwarder is None or self._forwarded is None:
                return
            for worker in self._forwarder.owners | self._forwarded.edges:
                if not await backplane.alive(worker):
                    self._lose(worker)


def _start(tasks: TaskGroup, function: Callable[..., Any], *arguments: Any) -> None:
    tasks.start_soon(function, *arguments)
