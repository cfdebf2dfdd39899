"""The host of an endpoint that lives on somebody else's server."""

from collections.abc import Callable
from typing import ClassVar

from acp_integration.endpoint.asgi import AcpEndpoint
from acp_integration.hosts.serving import ServingHost


class AcpEndpointHost(ServingHost):
    """Runs an endpoint while an application runs; its streams and sockets end before the server waits for them.

    A stop never fails: what has not ended in time is cut off, with a warning in the log.

    Args:
        endpoint: what the application's routes hand their requests to.
    """

    name: ClassVar[str] = "The ACP endpoint"

    def __init__(self, endpoint: AcpEndpoint) -> None:
        super().__init__()
        self.endpoint = endpoint
        self.stop_timeout = endpoint.options.shutdown_timeout + 1.0

    async def _serve(self, started: Callable[[], None]) -> None:
        async with self.endpoint.running():
            started()
            await self.endpoint.wait_ended()

    def _begin_stop(self) -> None:
        self.endpoint.begin_shutdown()

    def _cut(self) -> None:
        self.endpoint.cut()
