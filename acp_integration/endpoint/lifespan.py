"""The lifespan of a server, shared by an endpoint and an application that may or may not know such a thing."""

import logging
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING, Any

from acp_integration.endpoint.exchange import Message, Receive
from acp_integration.endpoint.gate import Sending

if TYPE_CHECKING:
    from acp_integration.endpoint.asgi import AcpEndpoint

logger = logging.getLogger(__name__)

Application = Callable[[dict[str, Any], Receive, Sending], Awaitable[None]]


async def share_lifespan(
    endpoint: "AcpEndpoint | None",
    application: Application,
    scope: dict[str, Any],
    receive: Receive,
    send: Sending,
    *,
    at_end: Callable[[], Awaitable[object]] | None = None,
) -> None:
    """Run an endpoint, if there is one, around an application, from the start of a server to its end.

    The start was received already. The streams of the endpoint end before the application hears of the shutdown;
    `at_end` is awaited when both have ended.
    """
    async with AsyncExitStack() as stack:
        if at_end is not None:
            stack.push_async_callback(at_end)
        if endpoint is not None:
            await stack.enter_async_context(endpoint.running())
        last = await _Inner(application, endpoint).run(scope, receive, send)
    if last is not None:
        # Nothing may be left to do: a server may cancel whoever has told it of the end.
        await send(last)


class _Inner:
    """Offers the lifespan to an application, and takes its part if it knows none."""

    def __init__(self, application: Application, endpoint: "AcpEndpoint | None") -> None:
        self._application = application
        self._endpoint = endpoint
        self._started = False
        self._answered = False
        self._last: Mapping[str, Any] | None = None

    async def run(self, scope: dict[str, Any], receive: Receive, send: Sending) -> Mapping[str, Any] | None:
        """Run to the end of the server, and return the message that ends the lifespan."""

        async def inner_receive() -> Message:
            if not self._started:
                self._started = True
                return {"type": "lifespan.startup"}
            return await self._shutdown(receive)

        async def inner_send(message: Mapping[str, Any]) -> None:
            self._answered = True
            if message["type"].startswith("lifespan.shutdown"):
                self._last = message
            else:
                await send(message)

        try:
            await self._application(scope, inner_receive, inner_send)
        except Exception:
            if self._answered:
                raise
            logger.debug("The application around which the endpoint runs knows no lifespan", exc_info=True)
        return self._last if self._answered else await self._stand_in(receive, send)

    async def _shutdown(self, receive: Receive) -> Message:
        message = await receive()
        if self._endpoint is not None:
            await self._endpoint.aclose()
        return message

    async def _stand_in(self, receive: Receive, send: Sending) -> Mapping[str, Any]:
        await send({"type": "lifespan.startup.complete"})
        await self._shutdown(receive)
        return {"type": "lifespan.shutdown.complete"}
