"""The names of the protocol's methods, and what each one is."""

from collections.abc import Mapping
from typing import Final, Literal

import msgspec

INITIALIZE: Final = "initialize"
AUTHENTICATE: Final = "authenticate"
LOGOUT: Final = "logout"
SESSION_NEW: Final = "session/new"
SESSION_LOAD: Final = "session/load"
SESSION_RESUME: Final = "session/resume"
SESSION_LIST: Final = "session/list"
SESSION_CLOSE: Final = "session/close"
SESSION_DELETE: Final = "session/delete"
SESSION_FORK: Final = "session/fork"
SESSION_PROMPT: Final = "session/prompt"
SESSION_SET_MODE: Final = "session/set_mode"
SESSION_SET_CONFIG_OPTION: Final = "session/set_config_option"
SESSION_CANCEL: Final = "session/cancel"
PROVIDERS_LIST: Final = "providers/list"
PROVIDERS_SET: Final = "providers/set"
PROVIDERS_DISABLE: Final = "providers/disable"
MCP_CONNECT: Final = "mcp/connect"
MCP_MESSAGE: Final = "mcp/message"
MCP_DISCONNECT: Final = "mcp/disconnect"
CANCEL_REQUEST: Final = "$/cancel_request"

SESSION_UPDATE: Final = "session/update"
SESSION_REQUEST_PERMISSION: Final = "session/request_permission"
FS_READ_TEXT_FILE: Final = "fs/read_text_file"
FS_WRITE_TEXT_FILE: Final = "fs/write_text_file"
TERMINAL_CREATE: Final = "terminal/create"
TERMINAL_OUTPUT: Final = "terminal/output"
TERMINAL_WAIT_FOR_EXIT: Final = "terminal/wait_for_exit"
TERMINAL_KILL: Final = "terminal/kill"
TERMINAL_RELEASE: Final = "terminal/release"
ELICITATION_CREATE: Final = "elicitation/create"
ELICITATION_COMPLETE: Final = "elicitation/complete"

PROTOCOL_VERSION: Final = 1


class Method(msgspec.Struct, frozen=True, kw_only=True):
    """What a method is, to the side that receives it.

    Attributes:
        name: its name on the wire.
        kind: whether it is answered; `mcp/message` comes both ways.
        session: whether its params name a session; if not, it belongs to the connection.
        gate: the capability of the receiving side without which it is not sent, None for a baseline method.
        stable: whether it is part of the stable protocol.
    """

    name: str
    kind: Literal["request", "notification", "either"] = "request"
    session: bool = False
    gate: str | None = None
    stable: bool = True


def _table(*methods: Method) -> Mapping[str, Method]:
    return {method.name: method for method in methods}


_MCP: Final = (
    Method(name=MCP_CONNECT, gate="mcpCapabilities.acp", stable=False),
    Method(name=MCP_MESSAGE, kind="either", gate="mcpCapabilities.acp", stable=False),
    Method(name=MCP_DISCONNECT, gate="mcpCapabilities.acp", stable=False),
)
_CANCEL_REQUEST: Final = Method(name=CANCEL_REQUEST, kind="notification")

AGENT_METHODS: Final = _table(
    Method(name=INITIALIZE),
    Method(name=AUTHENTICATE, gate="authMethods"),
    Method(name=LOGOUT, gate="auth.logout"),
    Method(name=SESSION_NEW),
    Method(name=SESSION_LOAD, session=True, gate="loadSession"),
    Method(name=SESSION_RESUME, session=True, gate="sessionCapabilities.resume"),
    Method(name=SESSION_LIST, gate="sessionCapabilities.list"),
    Method(name=SESSION_CLOSE, session=True, gate="sessionCapabilities.close"),
    Method(name=SESSION_DELETE, session=True, gate="sessionCapabilities.delete"),
    Method(name=SESSION_FORK, session=True, gate="sessionCapabilities.fork", stable=False),
    Method(name=SESSION_PROMPT, session=True),
    Method(name=SESSION_SET_MODE, session=True, gate="modes"),
    Method(name=SESSION_SET_CONFIG_OPTION, session=True, gate="configOptions"),
    Method(name=SESSION_CANCEL, kind="notification", session=True),
    Method(name=PROVIDERS_LIST, gate="providers", stable=False),
    Method(name=PROVIDERS_SET, gate="providers", stable=False),
    Method(name=PROVIDERS_DISABLE, gate="providers", stable=False),
    *_MCP,
    _CANCEL_REQUEST,
)
"""Every method an agent receives, by name."""

CLIENT_METHODS: Final = _table(
    Method(name=SESSION_UPDATE, kind="notification", session=True),
    Method(name=SESSION_REQUEST_PERMISSION, session=True),
    Method(name=FS_READ_TEXT_FILE, session=True, gate="fs.readTextFile"),
    Method(name=FS_WRITE_TEXT_FILE, session=True, gate="fs.writeTextFile"),
    Method(name=TERMINAL_CREATE, session=True, gate="terminal"),
    Method(name=TERMINAL_OUTPUT, session=True, gate="terminal"),
    Method(name=TERMINAL_WAIT_FOR_EXIT, session=True, gate="terminal"),
    Method(name=TERMINAL_KILL, session=True, gate="terminal"),
    Method(name=TERMINAL_RELEASE, session=True, gate="terminal"),
    Method(name=ELICITATION_CREATE, session=True, gate="elicitation"),
    Method(name=ELICITATION_COMPLETE, kind="notification", gate="elicitation.url"),
    *_MCP,
    _CANCEL_REQUEST,
)
"""Every method a client receives, by name."""
