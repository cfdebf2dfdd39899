"""The ASGI application of a project: HTTP, WebSocket and lifespan of the agent's path, all the rest Django's."""

import logging
from typing import TYPE_CHECKING

from django.conf import settings
from django.core.handlers.asgi import ASGIHandler
from django.urls import Resolver404, resolve

from acp_django import conf
from acp_django.gate import Judge, Scope
from acp_django.serving import serving
from acp_django.views import is_acp_view
from acp_integration.endpoint.exchange import Receive
from acp_integration.endpoint.gate import Sending, adding_headers, for_programs, json_answer, send_answer
from acp_integration.endpoint.lifespan import Application, share_lifespan
from acp_integration.errors import AcpError
from acp_integration.transports.selection import require_served

if TYPE_CHECKING:
    from acp_integration.endpoint import AcpEndpoint

logger = logging.getLogger(__name__)


def acp_asgi(application: Application) -> "AcpAsgi":
    """Put the agent's endpoint in front of a Django application, or of a router that holds one."""
    return AcpAsgi(application)


class AcpAsgi:
    """Lets Django judge each request for the agent, then serves its raw stream or socket; passes on the rest."""

    def __init__(self, application: Application) -> None:
        self._application = application
        self._judge = Judge(application)
        self._endpoint: AcpEndpoint | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Sending) -> None:
        """Serve one ASGI scope."""
        if scope["type"] == "lifespan":
            await self._live(scope, receive, send)
        elif scope["type"] in {"http", "websocket"} and _leads_to_the_agent(scope):
            await self._serve(scope, receive, send)
        elif scope["type"] == "websocket" and isinstance(self._application, ASGIHandler):
            await send_answer(scope, json_answer(404), receive, send)
        else:
            await self._application(scope, receive, send)

    async def _serve(self, scope: Scope, receive: Receive, send: Sending) -> None:
        answer, passed = await self._judge(scope)
        if passed is None:
            await send_answer(scope, for_programs(scope["path"], answer), receive, send)
        else:
            endpoint = self._endpoint or serving().endpoint
            await endpoint(passed, receive, adding_headers(send, answer.for_the_client))

    async def _live(self, scope: Scope, receive: Receive, send: Sending) -> None:
        await receive()  # lifespan.startup
        at_end = None
        try:
            require_served(conf.agent_settings(), "http")
            if conf.host_options().enabled:
                self._endpoint, at_end = serving().endpoint, serving().signals.settled
        except AcpError as error:
            logger.error("The agent cannot be served: %s", error)
            await send({"type": "lifespan.startup.failed", "message": str(error)})
        else:
            await share_lifespan(self._endpoint, self._application, scope, receive, send, at_end=at_end)


def _leads_to_the_agent(scope: Scope) -> bool:
    prefix: str = settings.FORCE_SCRIPT_NAME or scope.get("root_path", "")
    try:
        return is_acp_view(resolve(scope["path"].removeprefix(prefix)).func)
    except Resolver404:
        return False
