"""What is known of the client at the other end of one connection."""

from typing import Any

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
        authenticated: whether an authenticate request succeeded and no logout came since.
        sessions: the sessions open on this connection.
    """

    def __init__(self, connection: Connection, caller: Caller, options: RuntimeOptions) -> None:
        self.connection = connection
        self.caller = caller
        self.options = options
        self.capabilities: Any = None
        self.info: Any = None
        self.authenticated = False
        self.sessions = Sessions()
