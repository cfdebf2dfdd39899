"""The lifespan scope, which Django refuses: the endpoint runs in it, and so does an application that knows it."""

import logging
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

from acp_django.gate import Application, Message, Receive, Scope, Send

logger = logging.getLogger(__name__)

COMPLETE = {"type": "lifespan.shutdown.complete"}


class InnerLifespan:
    """Offers the lifespan to the application behind the wrapper, and takes its part if it knows no lifespan.

    Args:
        application: Django's handler, which raises, or a router or middleware that may answer.
        drain: awaited when the server begins to stop, before the application hears of it.
    """

    def __init__(self, application: Application, drain: Callable[[], Awaitable[object]]) -> None:
        self._application = application
        self._drain = drain
        self._startup_heard = False
        self._answers = 0
        self._last: Message | None = None

    async def run(self, scope: Scope, receive: Receive, send: Send) -> Message | None:
        """Run from the start, whose message was received already, to the end of the server.

        Returns:
            the message that ends the lifespan, to be sent when nothing is left to do: a server may cancel us then.
        """

        async def inner_receive() -> MutableMapping[str, Any]:
            if not self._startup_heard:
                self._startup_heard = True
                return {"type": "lifespan.startup"}
            message = await receive()
            await self._drain()
            return message

        async def inner_send(message: Message) -> None:
            self._answers += 1
            if message["type"].startswith("lifespan.shutdown"):
                self._last = message
            else:
                await send(message)

        try:
            await self._application(scope, inner_receive, inner_send)
        except Exception:
            if self._answers:
                raise
            logger.debug("The application behind the agent's endpoint knows no lifespan", exc_info=True)
        return self._last if self._answers else await self._stand_in(receive, send)

    async def _stand_in(self, receive: Receive, send: Send) -> Message:
        await send({"type": "lifespan.startup.complete"})
        await receive()
        await self._drain()
        return COMPLETE
