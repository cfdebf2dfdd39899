"""Which transport settings ask for: one rule, and errors that name the keys of whoever wrote them."""

from collections.abc import Callable
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final, Literal

from acp_integration.errors import TransportSelectionError
from acp_integration.options import ClientOptions
from acp_integration.transports.transport import Transport

if TYPE_CHECKING:
    from acp_integration.settings import AcpAgentSettings, AcpClientSettings

ClientTransportKind = Literal["stdio", "websocket", "http"]

_REQUIRED: Final[dict[ClientTransportKind, str]] = {
    "stdio": "stdio.command",
    "websocket": "websocket.uri",
    "http": "http.uri",
}


def select_client_transport(settings: "AcpClientSettings", prefix: str = "acp.client") -> Transport | None:
    """The transport that a client's settings ask for, not yet open; None if they ask for none.

    Args:
        settings: the client's settings.
        prefix: what stands before the keys in error texts.

    Raises:
        TransportSelectionError: if the settings name several transports, or one without saying where the agent is.
        MissingExtra: if the transport's library is not installed.
    """
    kind = client_transport_kind(settings, prefix)
    return None if kind is None else _MAKERS[kind](settings, settings.client_options())


def client_transport_kind(settings: "AcpClientSettings", prefix: str = "acp.client") -> ClientTransportKind | None:
    """The rule alone: an explicit type wins, else the only transport that is configured.

    Raises:
        TransportSelectionError: as `select_client_transport`.
    """
    transport = settings.transport
    values: dict[ClientTransportKind, str | None] = {
        "stdio": transport.stdio.command,
        "websocket": transport.websocket.uri,
        "http": transport.http.uri,
    }
    configured: list[ClientTransportKind] = [kind for kind, value in values.items() if value is not None]
    chosen = transport.type
    if chosen is not None and chosen not in configured:
        message = f"{_key(prefix, 'type')}={chosen} requires {_key(prefix, _REQUIRED[chosen])}"
        raise TransportSelectionError(message)
    if chosen is None and len(configured) > 1:
        raise TransportSelectionError(_several(configured, prefix))
    return chosen or next(iter(configured), None)


def _several(configured: list[ClientTransportKind], prefix: str) -> str:
    found = ", ".join(kind.upper() for kind in configured)
    return f"Several ACP client transports are configured [{found}]; choose one with {_key(prefix, 'type')}"


def _key(prefix: str, name: str) -> str:
    return f"{prefix.removesuffix('.')}.transport.{name}" if prefix else f"transport.{name}"


def require_served(
    settings: "AcpAgentSettings | None", served: Literal["stdio", "http"], prefix: str = "acp.agent"
) -> None:
    """Refuse a start that contradicts what the settings say is served.

    Args:
        settings: the agent's settings, or None if nothing is set.
        served: what this start serves.
        prefix: what stands before the keys in error texts.

    Raises:
        TransportSelectionError: if the settings explicitly ask for something else.
    """
    if settings is None or settings.serves in {None, served}:
        return
    serving = "standard input and output" if served == "stdio" else "HTTP and WebSocket"
    message = (
        f"{_key(prefix, 'type')}={settings.transport.type}, but this process was started to serve {serving}: "
        "remove the key, or start it the other way"
    )
    raise TransportSelectionError(message)


def _stdio(settings: "AcpClientSettings", options: ClientOptions) -> Transport:
    stdio = settings.transport.stdio
    return _made(
        "process.ProcessTransport",
        stdio.command,
        stdio.args,
        env=stdio.env or None,
        cwd=stdio.cwd,
        inherit_environment=options.inherit_environment,
        max_message_size=options.max_message_size,
    )


def _websocket(settings: "AcpClientSettings", options: ClientOptions) -> Transport:
    websocket = settings.transport.websocket
    return _made(
        "websocket.WebSocketTransport",
        websocket.uri,
        headers=websocket.headers,
        connect_timeout=options.connect_timeout,
        max_message_size=options.max_message_size,
    )


def _http(settings: "AcpClientSettings", options: ClientOptions) -> Transport:
    http = settings.transport.http
    return _made("http.HttpTransport", http.uri, headers=http.headers, max_message_size=options.max_message_size)


def _made(name: str, *arguments: Any, **options: Any) -> Transport:
    # Each transport needs a library of its own: only that of the chosen one is loaded.
    module, _, class_name = name.partition(".")
    transport: Transport = getattr(import_module(f"acp_integration.transports.{module}"), class_name)(
        *arguments, **options
    )
    return transport


_MAKERS: Final[dict[ClientTransportKind, Callable[["AcpClientSettings", ClientOptions], Transport]]] = {
    "stdio": _stdio,
    "websocket": _websocket,
    "http": _http,
}
