"""What endpoints ask for: a client, the same client for blocking code, or a stream of an agent's turn."""

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Annotated, Any

from fastapi import Depends
from starlette.requests import HTTPConnection

from acp_fastapi.serving import servings
from acp_fastapi.streams import TurnStream
from acp_integration.client.client import AcpClient
from acp_integration.client.sync import SyncAcpClient
from acp_integration.errors import ConfigurationError
from acp_integration.hosts.clients import DEFAULT, prefix_of

_AnnotatedAlias: Any = type(Annotated[int, "only its type is wanted"])


def _supply(name: str, wrap: Callable[[AcpClient], Any]) -> Callable[[HTTPConnection], Awaitable[Any]]:
    async def supply(connection: HTTPConnection) -> Any:
        for serving in servings(connection.scope.get("state", {})):
            if name in serving.clients:
                return wrap(await serving.clients.opened(name))
        raise ConfigurationError(
            f"There is no client to inject: set {prefix_of(name)}.transport.*, and include the router of an AcpFastAPI "
            "in the application whose lifespan the server runs"
        )

    return supply


def _named(kind: type[Any], wrap: Callable[[AcpClient], Any]) -> Any:
    """`Annotated[kind, Depends(...)]` for the client of `acp.client`, and with ``["name"]`` for a named one."""

    class Named(_AnnotatedAlias, _root=True):  # type: ignore[misc, call-arg]  # how the standard library builds aliases
        def __getitem__(self, name: str) -> Any:
            return Annotated[kind, Depends(_supply(name, wrap))]

    return Named(kind, (Depends(_supply(DEFAULT, wrap)),))


if TYPE_CHECKING:
    ClientDep = Annotated[AcpClient, "the client of acp.client"]
    SyncClientDep = Annotated[SyncAcpClient, "the client of acp.client, blocking"]
    TurnDep = Annotated[TurnStream, "the client of acp.client"]
else:
    ClientDep = _named(AcpClient, lambda client: client)
    SyncClientDep = _named(SyncAcpClient, SyncAcpClient)
    TurnDep = _named(TurnStream, TurnStream)
