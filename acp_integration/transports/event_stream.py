"""One event stream of an HTTP connection, reopened whenever it is cut."""

import logging
import random
from collections.abc import Awaitable, Callable, Mapping
from typing import Final

import anyio
import httpx2

from acp_integration.errors import ConnectionClosed

logger = logging.getLogger(__name__)

FIRST_DELAY: Final = 0.1
LONGEST_DELAY: Final = 5.0

BEFORE_ALL: Final = "0"
"""The id to go on from when a stream was cut before its first event was read: a server may have sent some."""

GONE: Final = frozenset({400, 401, 403, 404, 410})
"""Statuses after which asking again is no use."""


class StreamGone(ConnectionClosed):
    """The server will not open the stream.

    Attributes:
        status: the HTTP status it answered with.
    """

    def __init__(self, status: int, stream: str) -> None:
        super().__init__(f"The server answered HTTP status {status} to the request for {stream}")
        self.status = status


class EventStream:
    """A GET whose events are delivered one by one; each runs on a TCP connection of its own.

    Args:
        client: the HTTP client of the streams.
        uri: the endpoint.
        headers: the headers that name the connection, and the session if the stream is one's.
        deliver: takes the data of an event, and waits while the reader lags behind.
        limit: the largest event, in bytes.
        patience: how long to go on trying after the stream was cut, in seconds.
    """

    def __init__(
        self,
        client: httpx2.AsyncClient,
        uri: str,
        headers: Mapping[str, str],
        deliver: Callable[[bytes], Awaitable[None]],
        *,
        limit: int,
        patience: float,
    ) -> None:
        self.opened = anyio.Event()
        self.gone: ConnectionClosed | None = None
        self._client = client
        self._uri = uri
        self._headers = dict(headers)
        self._deliver = deliver
        self._limit = limit
        self._patience = patience
        self._last_id = ""
        self._cut_at: float | None = None
        self._attempts = 0
        self._settled = anyio.Event()

    def __repr__(self) -> str:
        session = self._headers.get("Acp-Session-Id")
        return "the connection's event stream" if session is None else f"the event stream of session {session}"

    async def run(self) -> None:
        """Read until the server refuses the stream, or until it could not be reopened for too long.

        Raises:
            ConnectionClosed: always, in the end.
        """
        try:
            while True:
                await self._read_once()
                self._last_id = self._last_id or BEFORE_ALL
                await self._pause()
        except ConnectionClosed as error:
            self.gone = error
            raise
        finally:
            self.opened.set()
            self._settled.set()

    async def settled(self) -> None:
        """Wait until the stream is open, or will not be opened again."""
        await self._settled.wait()

    async def _read_once(self) -> None:
        headers = {**self._headers, **({"Last-Event-ID": self._last_id} if self._last_id else {})}
        try:
            async with self._client.sse(self._uri, headers=headers, max_event_size=self._limit) as source:
                self._check(source.response.status_code)
                self._attempts, self._cut_at = 0, None
                self.opened.set()
                self._settled.set()
                async for event in source:
                    if event.data:
                        await self._deliver(event.data.encode())
                    self._last_id = event.id or self._last_id
        except httpx2.SSEError as error:
            raise ConnectionClosed(f"An event cannot be read: {error} (max-message-size)") from error
        except httpx2.HTTPError as error:
            logger.debug("Lost %r: %r", self, error)
        self._settled = anyio.Event()

    def _check(self, status: int) -> None:
        if status in GONE:
            raise StreamGone(status, repr(self))
        if status != 200:
            raise httpx2.TransportError(f"HTTP status {status}")

    async def _pause(self) -> None:
        now = anyio.current_time()
        if self._cut_at is None:
            self._cut_at = now
        elif now - self._cut_at > self._patience:
            raise ConnectionClosed(f"The server could not be reached again for {self._patience:g} s: lost {self!r}")
        delay = min(FIRST_DELAY * 2**self._attempts, LONGEST_DELAY)
        self._attempts += 1
        await anyio.sleep(delay * random.uniform(0.5, 1.0))  # noqa: S311  # spreads clients out, keeps no secret
