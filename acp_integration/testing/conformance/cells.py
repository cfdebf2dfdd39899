"""A way of serving an agent, as data."""

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from acp_integration.testing.conformance.network import http_wire, websocket_wire
from acp_integration.testing.conformance.peer import RawPeer, peer_on
from acp_integration.testing.conformance.wire import Wire, memory_wire, process_wire
from acp_integration.transports.transport import TransportKind


class Host:
    """A running host that a test connects to, as often as it likes."""

    def __init__(self, open_wire: Callable[[], AbstractAsyncContextManager[Wire]]) -> None:
        self._open_wire = open_wire

    @asynccontextmanager
    async def __call__(self, *, initialize: bool = True) -> AsyncIterator[RawPeer]:
        """A new peer on a new connection, which it initializes unless told otherwise."""
        async with self._open_wire() as wire, peer_on(wire) as peer:
            if initialize:
                await peer.initialize()
            yield peer


@dataclass(frozen=True, kw_only=True)
class Cell:
    """One way of serving the probe agent, and how far it is judged.

    Attributes:
        name: what a report calls it.
        transport: how the agent is reached.
        host: starts the host, and gives where the agent is: the agent itself for memory, a command for stdio, the
            ``http://`` URL of the endpoint for http and websocket.
        http2: whether http speaks HTTP/2.
        scattered: whether http gives every request a TCP connection of its own, so that several workers share them.
        smoke: whether it is judged by the smoke tests only.
        cannot: the tests it cannot pass, each with the reason; one that passes all the same fails the run.
        impossible: why there can be no such cell, if there can be none.
    """

    name: str
    transport: TransportKind
    host: Callable[[], AbstractAsyncContextManager[Any]]
    http2: bool = False
    scattered: bool = False
    smoke: bool = False
    cannot: Mapping[str, str] = field(default_factory=dict)
    impossible: str | None = None

    def wire(self, place: Any) -> AbstractAsyncContextManager[Wire]:
        """A new connection to the host."""
        if self.transport == "memory":
            return memory_wire(place)
        if self.transport == "stdio":
            return process_wire(place)
        if self.transport == "websocket":
            return websocket_wire(place)
        return http_wire(place, http2=self.http2, scattered=self.scattered)

    @asynccontextmanager
    async def hosting(self) -> AsyncIterator[Host]:
        """Start the host."""
        async with self.host() as place:
            yield Host(partial(self.wire, place))
