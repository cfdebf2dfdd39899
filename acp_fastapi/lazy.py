"""Starting an agent at its first request, in a sub-application whose lifespan no server runs."""

import asyncio
import logging
from collections.abc import Callable
from typing import ClassVar

from acp_fastapi.serving import Serving
from acp_integration.hosts.serving import ServingHost

logger = logging.getLogger(__name__)


class LazyServing(ServingHost):
    """Runs a `Serving` in a task of its own until the server shuts down."""

    name: ClassVar[str] = "The mounted ACP agent"

    def __init__(self, serving: Serving) -> None:
        super().__init__()
        self.serving = serving
        self.loop = asyncio.get_running_loop()
        logger.warning(
            "The lifespan of the application that includes the agent's router is not run, as is the rule for mounted "
            "applications: the agent starts with this first request and ends with the server"
        )

    @property
    def usable(self) -> bool:
        """Whether it belongs to this loop and has not failed to start."""
        failed = self._started.done() and self._started.exception() is not None
        return self.loop is asyncio.get_running_loop() and not failed

    async def _serve(self, started: Callable[[], None]) -> None:
        async with self.serving.running() as serving:
            assert serving.endpoint is not None
            async with serving.endpoint.running():
                started()
                await serving.endpoint.wait_ended()

    def _begin_stop(self) -> None:
        if self.serving.endpoint is not None:
            self.serving.endpoint.begin_shutdown()

    def _cut(self) -> None:
        if self.serving.endpoint is not None:
            self.serving.endpoint.cut()
