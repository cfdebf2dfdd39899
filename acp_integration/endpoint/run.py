"""An endpoint from a start to its end, on one event loop."""

import asyncio
import logging
from collections.abc import Callable
from contextlib import suppress

import anyio

from acp_integration.backplane.opening import Opener
from acp_integration.caller import Caller
from acp_integration.endpoint.exchange import Exchange
from acp_integration.endpoint.http import HttpRequests
from acp_integration.endpoint.service import Service
from acp_integration.endpoint.sockets import SocketRequests
from acp_integration.endpoint.workers import Workers
from acp_integration.errors import ConfigurationError
from acp_integration.hosts.taps import ShutdownTaps
from acp_integration.owned import OwnedTask

logger = logging.getLogger(__name__)


class EndpointRun:
    """Owns the task in which the endpoint and its exchange with other workers run.

    The task is nobody's child: the first request may start it, and must not end it, nor lend it its context variables.
    """

    def __init__(
        self,
        service: Service,
        loop: asyncio.AbstractEventLoop,
        begin_shutdown: Callable[[], None],
        open_backplane: Opener,
    ) -> None:
        self.service = service
        self.workers = Workers(
            service.connections.worker, open_backplane, self._answer, self.counters, service.options.max_connections
        )
        self.http = HttpRequests(service, self.workers)
        self.sockets = SocketRequests(service)
        self.failure: Exception | None = None
        self.loop = loop
        self.started = anyio.Event()
        self.taps = ShutdownTaps(begin_shutdown)
        self.taps.install()
        self._task = OwnedTask("acp-endpoint")
        self._task.start(self._serve)

    def counters(self) -> dict[str, float]:
        """What the endpoint holds, and has exchanged with other workers."""
        served = tuple(self.service.connections)
        return {
            "connections": sum(one.initialized for one in served),
            "sessions": sum(one.runtime.open_sessions for one in served),
            "turns": sum(one.runtime.active_turns for one in served),
            **self.workers.counters(),
        }

    def call(self, function: Callable[[], None]) -> None:
        """Call something on the endpoint's loop, from any thread."""
        with suppress(RuntimeError):  # the loop is closed: nothing is left to end
            self.loop.call_soon_threadsafe(function)

    async def _serve(self) -> None:
        try:
            async with self.workers.joined():
                await self.service.run(self.started, self.workers.close)
        except (ConfigurationError, OSError) as error:
            logger.error("The endpoint cannot start: %s", error)
            self.failure = error
        finally:
            self.service.finish()
            self.started.set()
            self.taps.restore()

    async def _answer(self, exchange: Exchange, caller: Caller) -> None:
        await self.http.answer(exchange, caller)
