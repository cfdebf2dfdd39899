"""Every error a user can see.

    AcpError
    +-- ConfigurationError
    |   +-- UnknownKey
    |   +-- TransportSelectionError
    |   +-- MissingExtra
    +-- DiscoveryError
    |   +-- SeveralAgents
    |   +-- HandlerError
    +-- RequestError
    +-- TurnError
    |   +-- TurnCancelled
    |   +-- CapabilityMissing
    +-- ClientError
    |   +-- AgentExited
    |   +-- AgentTimeout
    |   +-- VersionMismatch
    |   +-- PeerError
    |       +-- AuthRequired
    +-- ConnectionClosed

Each one carries the culprit as attributes and says what happened, to which thing, and what to do.
"""

from collections.abc import Sequence
from typing import Any


class AcpError(Exception):
    """The root of every error this project raises on purpose."""


class ConfigurationError(AcpError):
    """One or more settings cannot be used; the text has one line for each bad key.

    Attributes:
        problems: the lines of the text, one for each bad key.
    """

    def __init__(self, *problems: str) -> None:
        super().__init__("\n".join(problems))
        self.problems: tuple[str, ...] = problems


class UnknownKey(ConfigurationError):
    """Every bad key of this error is one that nobody knows.

    Attributes:
        keys: the unknown keys as the user wrote them.
    """

    def __init__(self, *problems: str, keys: Sequence[str] = ()) -> None:
        super().__init__(*problems)
        self.keys: tuple[str, ...] = tuple(keys)


class TransportSelectionError(ConfigurationError):
    """The settings name no single usable transport for the client."""


class MissingExtra(ConfigurationError):
    """A feature was used whose optional dependencies are not installed.

    Attributes:
        extra: the name of the extra to install.
    """

    def __init__(self, feature: str, extra: str) -> None:
        super().__init__(f"{feature} needs an optional dependency: pip install 'acp-integration[{extra}]'")
        self.extra = extra


class DiscoveryError(AcpError):
    """The agent to serve cannot be determined."""


class SeveralAgents(DiscoveryError):
    """More than one agent was found where one is served.

    Attributes:
        names: the qualified names of the classes found, sorted.
    """

    def __init__(self, message: str, names: Sequence[str] = ()) -> None:
        super().__init__(message)
        self.names: tuple[str, ...] = tuple(names)


class HandlerError(DiscoveryError):
    """An agent is declared wrongly; raised when it is built, never while it serves.

    Attributes:
        owner: the qualified name of the agent class or function.
        method: the name of the Python method at fault, if there is one.
        parameter: the name of the parameter at fault, if there is one.
    """

    def __init__(self, message: str, *, owner: str = "", method: str = "", parameter: str = "") -> None:
        super().__init__(message)
        self.owner = owner
        self.method = method
        self.parameter = parameter


class RequestError(AcpError):
    """What a handler raises to choose the JSON-RPC error its request is answered with.

    Attributes:
        code: the JSON-RPC error code, for example -32002 for an unknown resource.
        message: one line for the peer.
        data: any JSON value for the peer, or None to send none.
    """

    def __init__(self, code: int, message: str, data: Any = None) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.data = data

    def __str__(self) -> str:
        return f"{self.message} ({self.code})"


class TurnError(AcpError):
    """Something a handler asked of its turn cannot be done."""


class TurnCancelled(TurnError):
    """The turn was cancelled: the handler should clean up and return.

    Attributes:
        session_id: the session the turn belongs to, or None outside a session.
    """

    def __init__(self, session_id: str | None = None) -> None:
        super().__init__("The turn was cancelled")
        self.session_id = session_id


class CapabilityMissing(TurnError):
    """The peer did not announce the capability a call needs; nothing was sent.

    Attributes:
        capability: the name of the capability, for example ``fs.readTextFile``.
    """

    def __init__(self, capability: str, side: str = "client") -> None:
        check = "turn.client.supports_..." if side == "client" else f'client.supports("{capability}")'
        super().__init__(f"The {side} does not support {capability}: check {check} before the call")
        self.capability = capability


class ClientError(AcpError):
    """A call to an agent failed."""


class AgentExited(ClientError):
    """The agent's process ended while it was needed.

    Attributes:
        command: the program that was started.
        returncode: the exit code, negative for a signal, or None if it is not known.
        stderr_tail: the last lines the process wrote to stderr.
    """

    def __init__(
        self, message: str, *, command: str = "", returncode: int | None = None, stderr_tail: str = ""
    ) -> None:
        super().__init__(message)
        self.command = command
        self.returncode = returncode
        self.stderr_tail = stderr_tail


class AgentTimeout(ClientError):
    """An agent did not answer in time.

    Attributes:
        method: the protocol method that was called.
        seconds: how long the call waited.
    """

    def __init__(self, message: str, *, method: str, seconds: float) -> None:
        super().__init__(message)
        self.method = method
        self.seconds = seconds


class VersionMismatch(ClientError):
    """The agent speaks no protocol version this client speaks.

    Attributes:
        ours: the version this client asked for.
        theirs: the version the agent answered with.
    """

    def __init__(self, ours: int, theirs: int) -> None:
        super().__init__(f"The agent speaks protocol version {theirs}, this client speaks {ours}: update one of them")
        self.ours = ours
        self.theirs = theirs


class PeerError(ClientError):
    """The peer answered a request with an error.

    Attributes:
        code: the JSON-RPC error code.
        message: the peer's own text.
        data: the peer's error data, or None.
        method: the protocol method that was called.
    """

    def __init__(self, code: int, message: str, data: Any = None, *, method: str = "") -> None:
        super().__init__(f"{method or 'request'}: {message} ({code})")
        self.code = code
        self.message = message
        self.data = data
        self.method = method


class AuthRequired(PeerError):
    """The agent wants its user authenticated first: call `authenticate` with one of its methods.

    Attributes:
        auth_methods: the ids of the methods the agent offers.
    """

    def __init__(self, message: str, data: Any = None, *, method: str = "", auth_methods: Sequence[str] = ()) -> None:
        offered = ", ".join(auth_methods) or "none"
        super().__init__(-32000, f"{message}; the authentication methods it offers: {offered}", data, method=method)
        self.auth_methods: tuple[str, ...] = tuple(auth_methods)


class ConnectionClosed(AcpError):
    """The connection ended, so the call can have no answer.

    Attributes:
        reason: why it ended, in a few words.
    """

    def __init__(self, reason: str = "The connection is closed") -> None:
        super().__init__(reason)
        self.reason = reason
