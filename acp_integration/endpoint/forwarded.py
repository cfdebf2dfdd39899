"""Requests that reached another worker, for connections that are held here."""

import logging
from collections.abc import Awaitable, Callable
from typing import Final

import anyio

from acp_integration.backplane.protocol import Backplane, WorkerGone
from acp_integration.caller import Caller
from acp_integration.endpoint.connections import RETRY_LATER
from acp_integration.endpoint.exchange import Exchange, Message, PeerGone, Refusal
from acp_integration.endpoint.hop import Call, Part, packed

logger = logging.getLogger(__name__)

Answer = Callable[[Exchange, Caller], Awaitable[None]]
"""Answers one request of a caller that another worker has let in."""

CALLS_PER_CONNECTION: Final = 8
"""Requests of other workers that are answered at the same time, for each connection there may be; more are refused."""


class _RemotePeer:
    """Stands for the peer of another worker: the `receive` and `send` of one request."""

    def __init__(self, backplane: Backplane, edge: str, call: Call) -> None:
        self._backplane = backplane
        self._edge = edge
        self._call = call
        self._read = False
        self._start: Message = {}
        self._gone = anyio.Event()
        self._taken = anyio.Event()
        self.answered_whole = False

    def take(self) -> None:
        """The peer's server has taken the last part."""
        self._taken.set()

    def leave(self) -> None:
        """The peer is gone."""
        self._gone.set()
        self._taken.set()

    async def receive(self) -> Message:
        """The request, then the end of the peer."""
        if self._read:
            await self._gone.wait()
            return {"type": "http.disconnect"}
        self._read = True
        return {"type": "http.request", "body": self._call.body}

    async def send(self, message: Message) -> None:
        """Bring a part of the answer to the peer, and wait until its server has taken it.

        Raises:
            PeerGone: if the peer, or its worker, is gone.
        """
        if message["type"] == "http.response.start":
            self._start = message
            return
        await self._bring(message.get("body", b""), last=not message.get("more_body", False))

    async def end(self) -> None:
        """Leave no answer without an end."""
        if not self.answered_whole and not self._gone.is_set():
            await self._bring(b"", last=True)

    async def _bring(self, body: bytes, *, last: bool) -> None:
        if self._gone.is_set():
            raise PeerGone
        self._taken = anyio.Event()
        try:
            await self._backplane.send(self._edge, packed(self._part(body, last=last)))
        except WorkerGone:
            self.leave()
        if last:
            self.answered_whole = True
            return
        await self._taken.wait()
        if self._gone.is_set():
            raise PeerGone

    def _part(self, body: bytes, *, last: bool) -> Part:
        start, self._start = self._start, {}
        headers = [(name.decode("latin-1"), value.decode("latin-1")) for name, value in start.get("headers", ())]
        return Part(self._call.id, body, last, start.get("status", 0), headers)


class ForwardedRequests:
    """Answers what other workers hand over.

    Args:
        backplane: brings the answers.
        spawn: runs what answers.
        answer: answers one request.
        max_connections: how many connections there may be.

    Attributes:
        answered: how many requests were answered for other workers.
    """

    def __init__(self, backplane: Backplane, spawn: Callable[..., None], answer: Answer, max_connections: int) -> None:
        self.answered = 0
        self._max_calls = CALLS_PER_CONNECTION * max_connections
        self._backplane = backplane
        self._spawn = spawn
        self._answer = answer
        self._peers: dict[tuple[str, int], _RemotePeer] = {}

    @property
    def edges(self) -> set[str]:
        """The workers whose peers are being answered."""
        return {edge for edge, _ in self._peers}

    def begin(self, edge: str, call: Call) -> None:
        """Take a request of another worker's peer."""
        if (edge, call.id) in self._peers:
            logger.warning("Worker %s used the number of a request twice", edge)
            return
        peer = _RemotePeer(self._backplane, edge, call)
        crowded = len(self._peers) >= self._max_calls
        self._peers[edge, call.id] = peer
        self._spawn(self._serve, (edge, call.id), peer, call, crowded)

    def take(self, edge: str, call: int) -> None:
        """The server of a peer has taken the last part of its answer."""
        peer = self._peers.get((edge, call))
        if peer is not None:
            peer.take()

    def leave(self, edge: str, call: int) -> None:
        """A peer is gone."""
        peer = self._peers.get((edge, call))
        if peer is not None:
            peer.leave()

    def lose(self, worker: str) -> None:
        """A worker has ended, and with it every peer of its own."""
        for (edge, _), peer in tuple(self._peers.items()):
            if edge == worker:
                peer.leave()

    async def _serve(self, key: tuple[str, int], peer: _RemotePeer, call: Call, crowded: bool) -> None:
        headers = [(name.encode("latin-1"), value.encode("latin-1", "replace")) for name, value in call.headers]
        exchange = Exchange({"method": call.method, "headers": headers}, peer.receive, peer.send)
        try:
            if crowded:
                await exchange.refuse(
                    Refusal(503, f"Too many requests of other workers (limit {self._max_calls})", RETRY_LATER)
                )
            else:
                await self._answer(exchange, Caller(principal=call.principal))
            await peer.end()
        except PeerGone:
            logger.debug("A peer of worker %s hung up", key[0])
        finally:
            self.answered += 1
            del self._peers[key]
