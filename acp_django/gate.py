"""The gate: Django's own middleware, URLconf and guards judge a request once, before the endpoint serves it raw."""

from dataclasses import dataclass
from typing import Any, Final

from acp_django.executor import DjangoExecutor
from acp_integration.endpoint.gate import Answer, as_request, no_body
from acp_integration.endpoint.lifespan import Application

Scope = dict[str, Any]

GATE: Final = "acp_django.gate"
THREADS: Final = 4
_SLOW: Final = "Requests for the agent wait, because middleware or authentication is slow for those before them"


@dataclass(slots=True)
class Gate:
    """Stands in the scope of a request that Django judges; the view that lets the request pass leaves word here.

    Attributes:
        passed: the scope to serve the request with, or None for as long as it was not let in.
    """

    scope: Scope
    passed: Scope | None = None


class Judge:
    """Runs the application once on each request without its body, on few threads, which turns never take.

    However many clients come at once, they cannot use up the database's connections; and a turn that waits for what its
    client will say does not keep the client out.
    """

    def __init__(self, application: Application) -> None:
        self._application = application
        self._executor = DjangoExecutor(THREADS, _SLOW)

    async def __call__(self, scope: Scope) -> tuple[Answer, Scope | None]:
        """The answer to a request, and the scope to serve it with if it was let in."""
        gate, answer = Gate(scope), Answer()
        async with self._executor.scope():
            await self._application({**as_request(scope), GATE: gate}, no_body(), answer.record)
        return answer, gate.passed
