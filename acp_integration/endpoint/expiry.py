"""Ends the HTTP connections that nobody comes back to."""

import logging
from typing import Final

import anyio

from acp_integration.endpoint.connections import Connections, Served
from acp_integration.endpoint.http_connection import HttpConnection
from acp_integration.options import EndpointOptions

logger = logging.getLogger(__name__)

_LOOKS_PER_TIMEOUT: Final = 4
_SHORTEST: Final = 0.02
_LONGEST: Final = 5.0


class Expiry:
    """Looks at every HTTP connection from time to time.

    One without an open stream ends after `connection-idle-timeout` without a request or, while a turn runs on it, after
    `detached-turn-timeout` without a reader.
    """

    def __init__(self, connections: Connections, options: EndpointOptions) -> None:
        self._connections = connections
        self._idle = options.connection_idle_timeout
        self._detached = options.detached_turn_timeout

    async def watch(self) -> None:
        """Look until cancelled."""
        timeouts = [timeout for timeout in (self._idle, self._detached) if timeout is not None]
        if not timeouts:
            return
        pause = min(_LONGEST, max(_SHORTEST, min(timeouts) / _LOOKS_PER_TIMEOUT))
        while True:
            await anyio.sleep(pause)
            now = anyio.current_time()
            for served in self._connections:
                if isinstance(served.transport, HttpConnection):
                    self._look_at(served, served.transport, now)

    def _look_at(self, served: Served, connection: HttpConnection, now: float) -> None:
        if connection.streams.readers:
            served.quiet_since, served.unread_since = now, None
            return
        if served.unread_since is None:
            served.unread_since = now
        if served.runtime.active_turns:
            served.quiet_since = now
            self._end_after(self._detached, served.unread_since, now, connection, "nobody reads its turn")
        elif served.posts or not served.initialized:
            served.quiet_since = now
        else:
            self._end_after(self._idle, served.quiet_since, now, connection, "nobody came back to it")

    def _end_after(self, limit: float | None, since: float, now: float, connection: HttpConnection, why: str) -> None:
        if limit is not None and now - since >= limit:
            logger.info("Ended a connection: %s for %g s", why, limit)
            connection.hang_up()
