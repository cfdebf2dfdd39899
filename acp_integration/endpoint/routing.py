"""Where a message belongs: to the connection, or to one of its sessions."""

from dataclasses import dataclass
from typing import Final

import msgspec

from acp_integration import jsonrpc
from acp_integration.endpoint.exchange import Refusal
from acp_integration.transports.transport import RequestId
from acp_integration.wire import methods

MAX_ID_LENGTH: Final = 1024
"""The longest request id, session id or connection id, in characters."""

HEADER_REQUIRED: Final = frozenset(
    {
        methods.SESSION_PROMPT,
        methods.SESSION_SET_MODE,
        methods.SESSION_SET_CONFIG_OPTION,
        methods.SESSION_CANCEL,
        methods.SESSION_CLOSE,
    }
)
"""Methods that travel with the session's header."""

ANSWERED_ON_CONNECTION: Final = frozenset(
    {
        methods.INITIALIZE,
        methods.AUTHENTICATE,
        methods.LOGOUT,
        methods.SESSION_NEW,
        methods.SESSION_LIST,
        methods.SESSION_LOAD,
        methods.SESSION_RESUME,
        methods.SESSION_FORK,
        methods.SESSION_DELETE,
        methods.PROVIDERS_LIST,
        methods.PROVIDERS_SET,
        methods.PROVIDERS_DISABLE,
    }
)
"""Methods whose answer goes to the connection's own stream, though some of them name a session."""


class _Named(msgspec.Struct):
    sessionId: object = None  # noqa: N815  # as on the wire


_named: Final = msgspec.json.Decoder(_Named)


@dataclass(frozen=True, slots=True)
class Inbound:
    """One message from the peer, read as far as routing needs it.

    Attributes:
        frame: the message as it came.
        message: what it is.
        session: the session its params name, if they do.
    """

    frame: bytes
    message: jsonrpc.Message
    session: str | None

    @property
    def method(self) -> str | None:
        """The method called, None for an answer and for what is no message."""
        return self.message.method if isinstance(self.message, jsonrpc.Request | jsonrpc.Notification) else None

    @property
    def request_id(self) -> RequestId | None:
        """The id of a request, None for anything else."""
        return self.message.id if isinstance(self.message, jsonrpc.Request) else None

    @property
    def starts(self) -> bool:
        """Whether it is a request to initialize."""
        return self.request_id is not None and self.method == methods.INITIALIZE


def read(frame: bytes) -> Inbound:
    """Read one frame; never raises."""
    message = jsonrpc.decode(frame)
    session = None
    if isinstance(message, jsonrpc.Request | jsonrpc.Notification):
        session = session_named(message.params)
    return Inbound(frame, message, session)


def session_named(params: msgspec.Raw) -> str | None:
    """The session that params, or a result, name; None if they name none."""
    try:
        session = _named.decode(params).sessionId
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    return session if isinstance(session, str) else None


def too_long(inbound: Inbound) -> str | None:
    """What is wrong with the ids of a message, None if they have a usable length."""
    identifier = getattr(inbound.message, "id", None)
    if isinstance(identifier, str) and len(identifier) > MAX_ID_LENGTH:
        return f'"id" is longer than {MAX_ID_LENGTH} characters'
    if inbound.session is not None and len(inbound.session) > MAX_ID_LENGTH:
        return f'"sessionId" is longer than {MAX_ID_LENGTH} characters'
    return None


def stream_of(inbound: Inbound, header: str | None) -> str | None:
    """The session on whose stream a message is answered, None for the connection's own.

    Args:
        inbound: a request or notification.
        header: the session that the HTTP request names in its header, if it does.

    Raises:
        Refusal: with status 400 if the header is missing, or names another session than the params.
    """
    method = inbound.method or ""
    if header is None and method in HEADER_REQUIRED:
        raise Refusal(400, f"{method} needs the Acp-Session-Id header")
    if header is not None and inbound.session is not None and header != inbound.session:
        raise Refusal(400, "The Acp-Session-Id header and params.sessionId name different sessions")
    if method in ANSWERED_ON_CONNECTION or method.startswith("$/"):
        return None
    return header or inbound.session
