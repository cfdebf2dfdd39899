"""Putting a client together: what it announces, who handles what the agent sends, and the check that the two agree."""

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from importlib import metadata
from typing import Any, Final, Protocol, TypeVar

from acp_integration.client.calls import AgentCalls
from acp_integration.client.client import AcpClient
from acp_integration.client.connection import AgentConnection
from acp_integration.client.handlers import ClientHandlers, Handler, log_update
from acp_integration.errors import ConfigurationError, TransportSelectionError
from acp_integration.execution import HandlerExecutor, ThreadExecutor
from acp_integration.options import ClientOptions
from acp_integration.transports.transport import Transport
from acp_integration.wire import methods

logger = logging.getLogger(__name__)

H = TypeVar("H", bound=Handler)

CAPABILITIES: Final = (
    "read_text_file",
    "write_text_file",
    "terminal",
    "elicitation_form",
    "elicitation_url",
    "boolean_config_options",
)

_NEEDS: Final[Mapping[str, tuple[str, Mapping[str, str]]]] = {
    "read_text_file": ("fs.readTextFile", {methods.FS_READ_TEXT_FILE: "on_read_text_file"}),
    "write_text_file": ("fs.writeTextFile", {methods.FS_WRITE_TEXT_FILE: "on_write_text_file"}),
    "terminal": (
        "terminal",
        {
            methods.TERMINAL_CREATE: "on_create_terminal",
            methods.TERMINAL_OUTPUT: "on_terminal_output",
            methods.TERMINAL_RELEASE: "on_release_terminal",
            methods.TERMINAL_WAIT_FOR_EXIT: "on_wait_for_terminal_exit",
            methods.TERMINAL_KILL: "on_kill_terminal",
        },
    ),
    "elicitation_form": ("elicitation", {methods.ELICITATION_CREATE: "on_elicitation"}),
    "elicitation_url": ("elicitation", {methods.ELICITATION_CREATE: "on_elicitation"}),
}


_SETTERS: Final = {
    methods.SESSION_UPDATE: "on_update",
    methods.SESSION_REQUEST_PERMISSION: "on_permission",
    methods.ELICITATION_COMPLETE: "on_elicitation_complete",
    **{method: setter for _, needed in _NEEDS.values() for method, setter in needed.items()},
}


class ClientSettings(Protocol):
    """What a client needs of its settings; `AcpClientSettings` is one."""

    @property
    def capabilities(self) -> Any:
        """Which capabilities are switched on: an object with a flag for each."""
        ...

    def client_options(self) -> ClientOptions:
        """The timeouts and limits, with their defaults filled in."""
        ...


class ClientBuilder:
    """Collects the handlers of one client; a customizer is called with it.

    Every ``on_...`` method takes a function, sync or async, and returns it, so it can be used as a decorator. A sync
    function runs on a thread. Each request has one handler; updates may have several.

    Args:
        transport: the transport the client will open; one transport serves one client.
        settings: the client's settings, or None for the defaults.
        prefix: how settings are named in errors.
        executor: where sync handlers run.
    """

    def __init__(
        self,
        transport: Transport,
        settings: ClientSettings | None = None,
        *,
        prefix: str = "acp.client",
        executor: HandlerExecutor | None = None,
    ) -> None:
        self._transport = transport
        self._options = ClientOptions() if settings is None else settings.client_options()
        self._prefix = prefix
        self._handlers = ClientHandlers(updates=[log_update], executor=executor or ThreadExecutor())
        self._default_updates = True
        self._settings = frozenset(_switched_on(settings))
        self._announced = set(self._settings)
        self._info = {"name": "acp-integration", "version": metadata.version("acp-integration")}

    def info(self, name: str, version: str, title: str | None = None) -> None:
        """Say who the client is: the application's name and version."""
        self._info = {"name": name, "version": version} | ({} if title is None else {"title": title})

    def announce(self, *capabilities: str) -> None:
        """Announce capabilities beside those of the settings, by the names of the settings, for example ``terminal``.

        Raises:
            ConfigurationError: for a capability that there is not.
        """
        for name in capabilities:
            if name not in CAPABILITIES:
                raise ConfigurationError(f"There is no client capability {name}: there are {', '.join(CAPABILITIES)}")
            self._announced.add(name)

    def on_update(self, handler: H) -> H:
        """Handle updates: called with an `Update`. The first handler replaces the default, which logs at DEBUG."""
        if self._default_updates:
            self._handlers.updates.clear()
            self._default_updates = False
        self._handlers.updates.append(handler)
        return handler

    def on_permission(self, handler: H) -> H:
        """Decide on a tool call: called with the request, returns the id of the chosen option, or None to cancel."""
        return self._request(methods.SESSION_REQUEST_PERMISSION, handler)

    def on_read_text_file(self, handler: H) -> H:
        """Read a file: called with the request (`path`, `line`, `limit`), returns its text."""
        return self._request(methods.FS_READ_TEXT_FILE, handler)

    def on_write_text_file(self, handler: H) -> H:
        """Write a file: called with the request (`path`, `content`)."""
        return self._request(methods.FS_WRITE_TEXT_FILE, handler)

    def on_create_terminal(self, handler: H) -> H:
        """Start a command: called with the request, returns the id of the terminal."""
        return self._request(methods.TERMINAL_CREATE, handler)

    def on_terminal_output(self, handler: H) -> H:
        """Tell the output so far: returns a `TerminalOutputResponse` or its mapping."""
        return self._request(methods.TERMINAL_OUTPUT, handler)

    def on_wait_for_terminal_exit(self, handler: H) -> H:
        """Wait for the end of the command: returns a `WaitForTerminalExitResponse` or its mapping."""
        return self._request(methods.TERMINAL_WAIT_FOR_EXIT, handler)

    def on_kill_terminal(self, handler: H) -> H:
        """End the command and keep the terminal."""
        return self._request(methods.TERMINAL_KILL, handler)

    def on_release_terminal(self, handler: H) -> H:
        """End the command and forget the terminal."""
        return self._request(methods.TERMINAL_RELEASE, handler)

    def on_elicitation(self, handler: H) -> H:
        """Ask the user: returns a mapping such as ``{"action": "accept", "content": {...}}``, or None to cancel."""
        return self._request(methods.ELICITATION_CREATE, handler)

    def on_elicitation_complete(self, handler: H) -> H:
        """Hear that the page of an elicitation has been dealt with: called with its `elicitation_id`."""
        return self._notification(methods.ELICITATION_COMPLETE, handler)

    def on_ext_request(self, method: str, handler: Handler) -> None:
        """Answer an extension request: the handler is called with its params and returns any JSON value."""
        self._check_extension(method)
        self._request(method, handler)

    def on_ext_notification(self, method: str, handler: Handler) -> None:
        """Handle an extension notification: the handler is called with its params."""
        self._check_extension(method)
        self._notification(method, handler)

    def build(self) -> AcpClient:
        """The client; nothing is started or connected yet.

        Raises:
            ConfigurationError: if a capability lacks its handler, or the transport has a client already.
        """
        self._check_pairing()
        _claim(self._transport)
        connection = AgentConnection(self._transport, self._handlers, self._options)
        announcement = {
            "protocolVersion": methods.PROTOCOL_VERSION,
            "clientCapabilities": announced(self._announced),
            "clientInfo": self._info,
        }
        return AcpClient(AgentCalls(connection, self._options, announcement), self._options)

    def _request(self, method: str, handler: H) -> H:
        if method in self._handlers.requests:
            raise ConfigurationError(f"There is a handler for {method} already: each request has one")
        self._handlers.requests[method] = handler
        return handler

    def _notification(self, method: str, handler: H) -> H:
        if method in self._handlers.notifications:
            raise ConfigurationError(f"There is a handler for {method} already: each notification has one")
        self._handlers.notifications[method] = handler
        return handler

    def _check_extension(self, method: str) -> None:
        if method in methods.CLIENT_METHODS and not method.startswith("mcp/"):
            setter = _SETTERS.get(method, "the one for it")
            raise ConfigurationError(f"{method} is a method of the protocol: use {setter}")

    def _check_pairing(self) -> None:
        missing = {name: _missing(name, self._handlers.requests) for name in CAPABILITIES if name in self._announced}
        at_fault = [name for name, lacking in missing.items() if lacking]
        if at_fault:
            needs = dict.fromkeys(f"{_NEEDS[name][0]} needs {', '.join(missing[name])}" for name in at_fault)
            text = "The client advertises capabilities it has no handler for: " + "; ".join(needs)
            raise ConfigurationError(text + self._blame([name for name in at_fault if name in self._settings]))
        self._drop_unannounced()

    def _blame(self, names: Sequence[str]) -> str:
        if not names:
            return ""
        keys = ", ".join(f"{self._prefix}.capabilities.{name.replace('_', '-')}=true" for name in names)
        fix = "register the handlers in a client customizer, or set the settings to false"
        return f". The capabilities come from {keys}: {fix}"

    def _drop_unannounced(self) -> None:
        served = {method for name in self._announced for method in _NEEDS.get(name, ("", {}))[1]}
        for capability, needed in dict(_NEEDS.values()).items():
            idle = [method for method in needed if method not in served and method in self._handlers.requests]
            for method in idle:
                del self._handlers.requests[method]
            if idle:
                logger.warning("The client does not announce %s: its handlers are never called", capability)


def build_client(
    transport: Transport | None,
    settings: ClientSettings | None = None,
    customizers: Iterable[Callable[[ClientBuilder], object]] = (),
    *,
    prefix: str = "acp.client",
    executor: HandlerExecutor | None = None,
) -> AcpClient:
    """Build the client of an agent; nothing is started or connected before `initialize`.

    Args:
        transport: how the agent is reached; one transport serves one client. What `select_client_transport` gives,
            None included, which is an error here.
        settings: the client's settings, or None for the defaults.
        customizers: called in order with the builder, to add handlers.
        prefix: how settings are named in errors.
        executor: where sync handlers run.

    Raises:
        TransportSelectionError: if there is no transport.
        ConfigurationError: if a capability lacks its handler, or the transport has a client already.
    """
    if transport is None:
        raise TransportSelectionError(f"No agent to drive is configured: set one of {', '.join(_places(prefix))}")
    builder = ClientBuilder(transport, settings, prefix=prefix, executor=executor)
    for customize in customizers:
        customize(builder)
    return builder.build()


def _places(prefix: str) -> list[str]:
    start = f"{prefix}." if prefix and not prefix.endswith(".") else prefix
    return [f"{start}transport.{key}" for key in ("stdio.command", "websocket.uri", "http.uri")]


def announced(names: Iterable[str]) -> dict[str, Any]:
    """Capabilities as `initialize` spells them."""
    on = set(names)
    capabilities: dict[str, Any] = {
        "fs": {"readTextFile": "read_text_file" in on, "writeTextFile": "write_text_file" in on},
        "terminal": "terminal" in on,
    }
    modes: dict[str, Any] = {mode: {} for mode in ("form", "url") if f"elicitation_{mode}" in on}
    if modes:
        capabilities["elicitation"] = modes
    if "boolean_config_options" in on:
        capabilities["session"] = {"configOptions": {"boolean": {}}}
    return capabilities


def _switched_on(settings: ClientSettings | None) -> list[str]:
    return [] if settings is None else [name for name in CAPABILITIES if getattr(settings.capabilities, name, None)]


def _missing(name: str, handlers: Mapping[str, Handler]) -> list[str]:
    return [setter for method, setter in _NEEDS.get(name, ("", {}))[1].items() if method not in handlers]


def _claim(transport: Transport) -> None:
    """Mark a transport as taken, so that a second client is refused when it is built and not by a timeout."""
    if getattr(transport, "_acp_client", False):
        raise ConfigurationError("This transport has a client already: make another transport for another client")
    transport._acp_client = True  # type: ignore[attr-defined]  # noqa: SLF001  # a mark of ours on any transport
