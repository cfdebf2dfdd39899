"""What is known of the client at the other end of one connection."""

from collections.abc import Mapping, Sequence
from typing import Any

from anyio.lowlevel import EventLoopToken

from acp_integration.caller import Caller
from acp_integration.connection import Connection
from acp_integration.options import RuntimeOptions
from acp_integration.sessions import Sessions


class Peer:
    """The client of one connection as the runtime and the handlers see it.

    Attributes:
        connection: what writes to the client.
        caller: who opened the connection.
        capabilities: what the client announced at initialize; None before.
        info: the client's name and version; None if it did not say.
        advertised: what the agent announced at initialize; empty before.
        auth_methods: the wire forms of the ways to authenticate that were announced; None before initialize.
        authenticated: whether an authenticate request succeeded and no logout came since.
        sessions: the sessions open on this connection.
        home: the event loop that the connection lives on, for threads; None before the first turn.
    """

    def __init__(self, connection: Connection, caller: Caller, options: RuntimeOptions) -> None:
        self.connection = connection
        self.caller = caller
        self.options = options
        self.capabilities: Any = None
        self.info: Any = None
        self.advertised: Mapping[str, Any] = {}
        self.auth_methods: Sequence[Mapping[str, Any]] | None = None
        self.authenticated = False
        self.sessions = Sessions()
        self.home: EventLoopToken | None = None
