"""Reading what an agent sends, with more patience than the protocol asks for."""

from typing import Any

import msgspec

from acp_integration import jsonrpc
from acp_integration.jsonrpc import Message, Response
from acp_integration.transports.transport import RequestId


class UpdateParams(msgspec.Struct):
    """The params of `session/update`, whatever kind the update is."""

    sessionId: str  # noqa: N815  # as the protocol spells it
    update: dict[str, Any]


class CancelParams(msgspec.Struct):
    """The params of `$/cancel_request`."""

    requestId: RequestId  # noqa: N815


def read_frame(frame: bytes) -> Message:
    """One message; bytes that are no UTF-8 and ids of ours that come back as strings are put right."""
    message = jsonrpc.decode(_as_utf8(frame))
    return _with_our_id(message) if isinstance(message, Response) else message


def _as_utf8(frame: bytes) -> bytes:
    """Bytes that are no UTF-8 become replacement characters, rather than the loss of a whole answer."""
    if frame.isascii():
        return frame
    try:
        frame.decode()
    except UnicodeDecodeError:
        return frame.decode("utf-8", "replace").encode()
    return frame


def _with_our_id(response: Response) -> Response:
    """Our ids are integers; an agent that returns one as a string still means it."""
    identifier = response.id
    if isinstance(identifier, str) and identifier.isascii() and identifier.isdigit():
        return msgspec.structs.replace(response, id=int(identifier))
    return response
