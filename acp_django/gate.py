"""The gate: Django's own middleware, URLconf and guards judge a request once, before the endpoint serves it raw."""

from dataclasses import dataclass
from typing import Any, Final

import anyio
from asgiref.sync import ThreadSensitiveContext, sync_to_async

from acp_django.executor import close_connections
from acp_integration.endpoint.gate import Answer, as_request, no_body
from acp_integration.endpoint.lifespan import Application

Scope = dict[str, Any]

GATE: Final = "acp_django.gate"


@dataclass(slots=True)
class Gate:
    """Stands in the scope of a request that Django judges; the view that lets the request pass leaves word here.

    Attributes:
        passed: the scope to serve the request with, or None for as long as it was not let in.
    """

    scope: Scope
    passed: Scope | None = None


async def judge(application: Application, scope: Scope) -> tuple[Answer, Scope | None]:
    """Run the application once on a request without its body.

    Returns:
        its answer, and the scope to serve the request with if it was let in.
    """
    gate, answer = Gate(scope), Answer()
    async with ThreadSensitiveContext():
        try:
            await application({**as_request(scope), GATE: gate}, no_body(), answer.record)
        finally:
            with anyio.CancelScope(shield=True):
                await sync_to_async(close_connections)()
    return answer, gate.passed
