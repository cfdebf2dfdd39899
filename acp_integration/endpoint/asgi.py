"""The endpoint: a raw ASGI application that serves one agent over Streamable HTTP and WebSocket."""

import asyncio
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import anyio

from acp_integration.backplane.opening import backplane_opener
from acp_integration.endpoint.connections import Served
from acp_integration.endpoint.exchange import JSON, Exchange, Receive, Scope, Send
from acp_integration.endpoint.hop import largest_hop
from acp_integration.endpoint.run import EndpointRun
from acp_integration.endpoint.service import AgentFactory, Service
from acp_integration.endpoint.validation import validated
from acp_integration.options import EndpointOptions

if TYPE_CHECKING:
    from acp_integration.settings import AcpAgentSettings


class AcpEndpoint:
    """Serves an agent to HTTP requests and WebSockets; which path they came in on is the caller's business.

    Each connection gets an agent of its own from the factory. An application in front of the endpoint says who is
    calling by setting ``scope[CALLER_KEY]`` to a `Caller`; without it the caller is anonymous.

    The endpoint runs inside ``async with endpoint.running():``, or in the lifespan of a server of which it is the
    application, or else from its first request on. It learns by itself that uvicorn, hypercorn, granian or daphne shut
    down, and ends every stream before they wait for it; `begin_shutdown` is for everybody else.

    Args:
        factory: makes the agent of a connection from its transport and its caller.
        options: what bounds the endpoint; by default what `settings` say.
        settings: the agent's settings, read when `options` is None.
        place: what tells the endpoint from others of the application that have the same path; worker processes share
            the connections of endpoints with the same path and place.

    Raises:
        ConfigurationError: if a limit makes no sense.
    """

    def __init__(
        self,
        factory: AgentFactory,
        options: EndpointOptions | None = None,
        *,
        settings: "AcpAgentSettings | None" = None,
        place: str = "",
    ) -> None:
        if options is None:
            options = EndpointOptions() if settings is None else settings.endpoint_options()
        self.options = validated(options)
        self._place = f"{options.path} {place}"
        self._open_backplane = backplane_opener(options.workers, largest_hop(options.max_message_size))
        self._factory = factory
        self._run: EndpointRun | None = None

    @property
    def active_connection_count(self) -> int:
        """How many connections are initialized and not ended."""
        return sum(served.initialized for served in self._connections())

    @property
    def active_turn_count(self) -> int:
        """How many turns run on them."""
        return sum(served.runtime.active_turns for served in self._connections())

    def counters(self) -> dict[str, float]:
        """What a metrics library would want to know of the endpoint in this process; nothing before its start.

        ``connections``, ``sessions`` and ``turns`` are open or running. Since the start: ``forwarded_requests`` were
        handed to other workers and waited ``forwarded_seconds`` for the start of their answers, all together;
        ``answered_for_workers`` were answered for them.
        """
        return {} if self._run is None else self._run.counters()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one ASGI scope: a request, a WebSocket, or the lifespan of a server."""
        if scope["type"] == "lifespan":
            await self._lifespan(receive, send)
            return
        run = await self._started()
        run.taps.look_again()
        if scope["type"] == "http":
            await run.http.serve(scope, receive, send)
        elif scope["type"] == "websocket":
            await run.sockets.serve(scope, receive, send)

    async def health(self, scope: Scope, receive: Receive, send: Send) -> None:
        """A second ASGI application, for probes: 200 ``{"status":"ok"}``, and 503 once the shutdown has begun."""
        closing = self._run is not None and self._run.service.closing
        body = b'{"status":"shutting down"}' if closing else b'{"status":"ok"}'
        await Exchange(scope, receive, send).answer(503 if closing else 200, body, JSON)

    @asynccontextmanager
    async def running(self) -> AsyncIterator["AcpEndpoint"]:
        """Run the endpoint inside this context, and leave it with every connection ended."""
        if self._run is not None and self._run.service.ended.is_set():
            self._run = None
        run = await self._started()
        if run.failure is not None:
            raise run.failure
        try:
            yield self
        finally:
            with anyio.CancelScope(shield=True):
                await self.aclose()

    def begin_shutdown(self) -> None:
        """Refuse new work, cancel every turn, and end every stream and socket; from any thread, also from a signal."""
        if self._run is not None:
            self._run.call(self._run.service.close)

    def cut(self) -> None:
        """End everything now instead of within `shutdown-timeout`; from any thread, also from a signal."""
        if self._run is not None:
            self._run.call(self._run.service.cut)

    async def wait_ended(self) -> None:
        """Wait until the endpoint, which must be running, has shut down and every connection has ended."""
        if self._run is not None:
            await self._run.service.ended.wait()

    async def aclose(self, timeout: float | None = None) -> bool:
        """Shut down and wait until everything has ended.

        Args:
            timeout: how many seconds to wait; None waits as long as `shutdown-timeout` lets it last.

        Returns:
            Whether everything has ended.
        """
        run = self._run
        if run is None:
            return True
        run.call(run.service.close)
        if run.loop is asyncio.get_running_loop():
            with anyio.move_on_after(timeout):
                await run.service.ended.wait()
        return run.service.ended.is_set()

    async def _started(self) -> "EndpointRun":
        loop = asyncio.get_running_loop()
        if self._run is None or self._run.loop is not loop:
            service = Service(self._factory, self.options, self._place)
            self._run = EndpointRun(service, loop, self.begin_shutdown, self._open_backplane)
        await self._run.started.wait()
        return self._run

    def _connections(self) -> Iterable[Served]:
        return () if self._run is None else self._run.service.connections

    async def _lifespan(self, receive: Receive, send: Send) -> None:
        await receive()
        async with self.running():
            await send({"type": "lifespan.startup.complete"})
            await receive()
        await send({"type": "lifespan.shutdown.complete"})
