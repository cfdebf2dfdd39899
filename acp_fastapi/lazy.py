"""Starting an agent at its first request, in a sub-application whose lifespan no server runs."""

import asyncio
import logging

import anyio

from acp_fastapi.serving import Serving
from acp_integration.owned import OwnedTask

logger = logging.getLogger(__name__)


class LazyServing:
    """Runs a `Serving` in a task of its own until the server shuts down."""

    def __init__(self, serving: Serving) -> None:
        self.loop = asyncio.get_running_loop()
        self.failure: Exception | None = None
        self._serving = serving
        self._settled = anyio.Event()
        self._task = OwnedTask("acp-fastapi")
        self._task.start(self._run)
        logger.warning(
            "The lifespan of the application that includes the agent's router is not run, as is the rule for mounted "
            "applications: the agent starts with this first request and ends with the server"
        )

    async def started(self) -> Serving:
        """What runs, once it does.

        Raises:
            Exception: what kept it from starting.
        """
        await self._settled.wait()
        if self.failure is not None:
            raise self.failure
        return self._serving

    async def _run(self) -> None:
        try:
            async with self._serving.running() as serving:
                if serving.endpoint is None:
                    return
                async with serving.endpoint.running() as endpoint:
                    self._settled.set()
                    await endpoint.wait_ended()
        except Exception as error:
            self.failure = error
            raise
        finally:
            self._settled.set()
