"""What an agent does without a handler of its own."""

import os
from uuid import uuid4

from acp_integration.binding import BoundHandler
from acp_integration.errors import RequestError
from acp_integration.jsonrpc import INVALID_PARAMS, encode
from acp_integration.sessions import SessionRecord
from acp_integration.turns import Call
from acp_integration.wire import methods


class NewSession(BoundHandler):
    """Opens a session with a random id, which nobody can guess."""

    def __init__(self) -> None:
        super().__init__(methods.SESSION_NEW)

    async def __call__(self, call: Call) -> bytes:
        """Record what the client asked for.

        Raises:
            RequestError: -32602 for a `cwd` that is no absolute path.
        """
        params = call.params
        if not os.path.isabs(params.cwd):
            raise RequestError(INVALID_PARAMS, "Invalid params: params.cwd must be an absolute path")
        record = SessionRecord(
            str(uuid4()),
            cwd=params.cwd,
            additional_directories=tuple(params.additional_directories),
            mcp_servers=tuple(params.mcp_servers),
        )
        call.peer.sessions.add(record)
        return encode({"sessionId": record.id})
