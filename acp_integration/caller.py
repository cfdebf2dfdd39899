"""Who opened a connection, as the framework in front of it found out."""

from collections.abc import Callable, Mapping
from typing import Any, Final
from uuid import UUID

import msgspec

from acp_integration.errors import ConfigurationError


class HttpRequest(msgspec.Struct, frozen=True, eq=False):
    """The HTTP request or WebSocket handshake that opened a connection, as plain values.

    Attributes:
        path: the path asked for.
        query: the undecoded query string.
        headers: header names in lower case; values of a repeated header are joined by ", ".
        client: address and port of the peer as the server saw it, or None.
        scope: the ASGI scope itself, for what stands nowhere else.
    """

    path: str
    query: str = ""
    headers: Mapping[str, str] = msgspec.field(default_factory=dict)
    client: tuple[str, int] | None = None
    scope: Mapping[str, Any] = msgspec.field(default_factory=dict)

    def __repr__(self) -> str:
        return (
            f"HttpRequest({self.path!r}, {self.query!r}, {self.headers!r}, {self.client!r})"  # a scope holds anything
        )


class Caller(msgspec.Struct, frozen=True):
    """Whom a connection belongs to.

    Attributes:
        user: whatever the framework calls a user, given to handlers as ``turn.user``.
        principal: the string the connection is bound to; None for an anonymous caller.
        http: the request that opened the connection; None on stdio and in memory.
        guarded: whether a guard of the application let the caller in.
    """

    user: Any = None
    principal: str | None = None
    http: HttpRequest | None = None
    guarded: bool = False

    @property
    def remote(self) -> bool:
        """Whether the peer is reached over a network rather than having started this process."""
        return self.http is not None


def principal_of(user: Any, make: Callable[[Any], str | int] | None = None) -> str | None:
    """The string that a user's connections belong to; None for nobody.

    Args:
        user: by default itself the principal if it is a string or an integer, else its ``id`` is.
        make: makes the principal of another kind of user.

    Raises:
        ConfigurationError: if the application has to say how it is made.
    """
    if user is None:
        return None
    identity = make(user) if make else user
    if not isinstance(identity, str | int):
        identity = getattr(identity, "id", None)
    if isinstance(identity, str | int | UUID) and not isinstance(identity, bool):
        return str(identity)
    message = f"A {type(user).__name__} is no principal and has no usable id: give principal=..., which makes one of it"
    raise ConfigurationError(message)


LOCAL: Final = Caller()
