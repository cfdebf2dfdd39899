"""Files as the client sees them, unsaved changes included."""

from pathlib import PurePath
from typing import Any

import msgspec

from acp_integration.context.capabilities import require
from acp_integration.jsonrpc import encode
from acp_integration.requests import ask
from acp_integration.turns import Call
from acp_integration.wire import methods
from acp_integration.wire.decoding import decode_result


async def read_text_file(call: Call, path: str, line: int | None, limit: int | None) -> str:
    """The text of a file, or some lines of it."""
    require(call.capabilities, "fs.readTextFile")
    params: dict[str, Any] = {"sessionId": call.session_id, "path": path}
    if line is not None:
        params["line"] = line
    if limit is not None:
        params["limit"] = limit
    raw = await _request(call, methods.FS_READ_TEXT_FILE, params)
    return str(decode_result(methods.FS_READ_TEXT_FILE, raw).content)


async def write_text_file(call: Call, path: str, content: str) -> None:
    """Write a file."""
    require(call.capabilities, "fs.writeTextFile")
    await _request(call, methods.FS_WRITE_TEXT_FILE, {"sessionId": call.session_id, "path": path, "content": content})


def absolute(path: str | PurePath, cwd: str) -> str:
    """A path the protocol takes: one that is relative is meant from the session's directory."""
    return str(PurePath(cwd, path))


async def _request(call: Call, method: str, params: dict[str, Any]) -> msgspec.Raw:
    return await ask(call, method, encode(params), timeout=call.peer.options.request_timeout)
