"""The host of a listener of our own: an endpoint on a port, over HTTP/1.1 and HTTP/2, with no application around it."""

import logging
import socket
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, ClassVar, Final

import anyio

from acp_integration.endpoint.application import EndpointApplication
from acp_integration.endpoint.asgi import AcpEndpoint
from acp_integration.errors import MissingExtra
from acp_integration.hosts.serving import ServingHost
from acp_integration.options import ListenerOptions

HAS_SERVER = find_spec("hypercorn") is not None
if TYPE_CHECKING or HAS_SERVER:
    from hypercorn.asyncio import serve as serve_asgi
    from hypercorn.config import Config

logger = logging.getLogger(__name__)

_LOOPBACK: Final = ("127.0.0.1", "::1")
_BACKLOG: Final = 1024
_TRIES: Final = 20
_KEEP_ALIVE: Final = 20.0
_MESSAGE_OVERHEAD: Final = 1024
_SERVER_STOPS_WITHIN: Final = 3.0


class AcpListenerHost(ServingHost):
    """Serves an endpoint on a port of its own until it is stopped; a client that leaves ends nothing.

    Args:
        endpoint: what is served, on the path of its options.
        options: where to listen: by default on this machine only, on port 8080.

    Raises:
        MissingExtra: if the server is not installed.
    """

    name: ClassVar[str] = "The ACP listener"

    def __init__(self, endpoint: AcpEndpoint, options: ListenerOptions | None = None) -> None:
        if not HAS_SERVER:
            raise MissingExtra("A listener of its own", "server")
        super().__init__()
        self.endpoint = endpoint
        self.stop_timeout = endpoint.options.shutdown_timeout + _SERVER_STOPS_WITHIN
        self._options = options or ListenerOptions()
        self._port: int | None = None

    def port(self) -> int | None:
        """The port that is bound; None before the start."""
        return self._port

    async def _serve(self, started: Callable[[], None]) -> None:
        with ExitStack() as sockets:
            bound = [sockets.enter_context(listening) for listening in bind(self._options.host, self._options.port)]
            self._port = bound[0].getsockname()[1]
            async with self.endpoint.running(), anyio.create_task_group() as tasks:
                server_ended = anyio.Event()
                tasks.start_soon(self._run_server, bound, server_ended)
                logger.info("ACP agent listening on port %d", self._port)
                started()
                await self.endpoint.wait_ended()
                # Its own connections may be kept alive by clients for as long as they like.
                with anyio.move_on_after(_SERVER_STOPS_WITHIN):
                    await server_ended.wait()
                tasks.cancel_scope.cancel()

    def _begin_stop(self) -> None:
        self.endpoint.begin_shutdown()

    def _cut(self) -> None:
        self.endpoint.cut()

    async def _run_server(self, bound: Sequence[socket.socket], ended: anyio.Event) -> None:
        config = _server_config(bound, self._options, self.endpoint.options.max_message_size)
        application: Any = EndpointApplication(self.endpoint)
        try:
            await serve_asgi(application, config, shutdown_trigger=self.endpoint.wait_ended)
        finally:
            ended.set()


def bind(host: str | None, port: int) -> list[socket.socket]:
    """Sockets that listen on a host; None means this machine only, over IPv4 and, where there is one, IPv6.

    Args:
        host: a name or address, or None.
        port: the port, 0 for any free one, the same on every socket.

    Raises:
        OSError: if the port is taken.
    """
    if host is not None:
        return [_listen(host, port)]
    for _ in range(_TRIES if port == 0 else 1):
        first = _listen(_LOOPBACK[0], port)
        try:
            return [first, _listen(_LOOPBACK[1], first.getsockname()[1])] if _has_ipv6() else [first]
        except OSError:
            first.close()
    raise OSError(f"Port {port} of the loopback interface is taken")


def _has_ipv6() -> bool:
    try:
        with socket.socket(socket.AF_INET6) as probe:
            probe.bind((_LOOPBACK[1], 0))
    except OSError:
        return False
    return True


def _listen(host: str, port: int) -> socket.socket:
    family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
    listening = socket.create_server((host, port), family=family, backlog=_BACKLOG)
    listening.setblocking(False)  # noqa: FBT003
    return listening


def _server_config(bound: Sequence[socket.socket], options: ListenerOptions, max_message_size: int) -> Any:
    config = Config()
    config.bind = [f"fd://{listening.detach()}" for listening in bound]  # the server closes what it is given
    config.errorlog = logger
    config.include_server_header = False
    config.h2_max_concurrent_streams = options.max_concurrent_streams_per_connection
    config.keep_alive_max_requests = 2**31
    # Longer than clients keep an unused connection, or their next POST meets one that is just being closed; no longer
    # than needed, because the server keeps also those that were closed for that time.
    config.keep_alive_timeout = _KEEP_ALIVE
    # The endpoint closes what is too long itself, and says so.
    config.websocket_max_message_size = max_message_size + _MESSAGE_OVERHEAD
    config.graceful_timeout = _SERVER_STOPS_WITHIN / 2
    return config
