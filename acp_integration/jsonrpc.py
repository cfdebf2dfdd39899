"""JSON-RPC 2.0: one frame in, one frame out. Knows no protocol method."""

import json
import re
from typing import Any, Final

import msgspec

from acp_integration.transports.transport import RequestId

PARSE_ERROR: Final = -32700
INVALID_REQUEST: Final = -32600
METHOD_NOT_FOUND: Final = -32601
INVALID_PARAMS: Final = -32602
INTERNAL_ERROR: Final = -32603
REQUEST_CANCELLED: Final = -32800
AUTH_REQUIRED: Final = -32000
RESOURCE_NOT_FOUND: Final = -32002

_EMPTY: Final = msgspec.Raw(b"{}")
_SURROGATE: Final = re.compile("[\ud800-\udfff]")


class Request(msgspec.Struct, frozen=True):
    """A call that must be answered once."""

    id: RequestId
    method: str
    params: msgspec.Raw


class Notification(msgspec.Struct, frozen=True):
    """A call that is never answered."""

    method: str
    params: msgspec.Raw


class Response(msgspec.Struct, frozen=True):
    """The peer's answer to one of our requests; `error` is None for a success."""

    id: RequestId | None
    result: msgspec.Raw
    error: msgspec.Raw | None


class Invalid(msgspec.Struct, frozen=True):
    """A frame that is no usable message, with the error that answers it."""

    id: RequestId | None
    code: int
    message: str


Message = Request | Notification | Response | Invalid


class _Envelope(msgspec.Struct):
    jsonrpc: str
    id: int | str | msgspec.UnsetType | None = msgspec.UNSET
    method: str | msgspec.UnsetType = msgspec.UNSET
    params: msgspec.Raw = _EMPTY
    result: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET
    error: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET


_envelopes: Final = msgspec.json.Decoder(_Envelope)
_encoder: Final = msgspec.json.Encoder()
encode: Final = _encoder.encode


def decode(frame: bytes) -> Message:
    """Read one frame; never raises, what cannot be used becomes `Invalid`."""
    try:
        if not frame.isascii():
            frame.decode("utf-8")  # params are not looked at yet, and must be text all the same
        envelope = _envelopes.decode(frame)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return _decode_slowly(frame)
    return _classify(envelope)


def _classify(envelope: _Envelope) -> Message:
    method, identifier = envelope.method, envelope.id
    if envelope.jsonrpc != "2.0":
        return Invalid(_usable(identifier), INVALID_REQUEST, 'Invalid request: "jsonrpc" must be "2.0"')
    if isinstance(method, str):
        if identifier is msgspec.UNSET:
            return Notification(method, envelope.params)
        if identifier is None or not _in_range(identifier):
            return Invalid(None, INVALID_REQUEST, 'Invalid request: "id" must be a string or a 64-bit integer')
        return Request(identifier, method, envelope.params)
    if identifier is msgspec.UNSET or (envelope.result is msgspec.UNSET and envelope.error is msgspec.UNSET):
        return Invalid(_usable(identifier), INVALID_REQUEST, 'Invalid request: "method" is missing')
    error = (
        None if isinstance(envelope.error, msgspec.UnsetType) or bytes(envelope.error) == b"null" else envelope.error
    )
    result = msgspec.Raw(b"null") if isinstance(envelope.result, msgspec.UnsetType) else envelope.result
    return Response(identifier, result, error)


def _decode_slowly(frame: bytes) -> Message:
    """Tell what is wrong with a frame, and rescue one whose only fault is a lone surrogate."""
    try:
        value = json.loads(frame.decode("utf-8"), parse_constant=_refuse_constant)
    except (ValueError, RecursionError):
        return Invalid(None, PARSE_ERROR, "Parse error: the message is not JSON")
    if isinstance(value, list):
        return Invalid(None, INVALID_REQUEST, "Invalid request: batches are not supported, send one message at a time")
    if not isinstance(value, dict):
        return Invalid(None, INVALID_REQUEST, "Invalid request: a message is a JSON object")
    try:
        return _classify(_envelopes.decode(encode(_without_surrogates(value))))
    except msgspec.ValidationError:
        return _blame(value)
    except (ValueError, TypeError, RecursionError, OverflowError):
        return Invalid(
            None, PARSE_ERROR, "Parse error: the message is nested too deeply or holds a number out of range"
        )


def _blame(value: dict[str, Any]) -> Invalid:
    identifier = _usable(_without_surrogates(value.get("id")))
    if value.get("jsonrpc") != "2.0":
        return Invalid(identifier, INVALID_REQUEST, 'Invalid request: "jsonrpc" must be "2.0"')
    if "method" in value and not isinstance(value["method"], str):
        return Invalid(identifier, INVALID_REQUEST, 'Invalid request: "method" must be a string')
    return Invalid(None, INVALID_REQUEST, 'Invalid request: "id" must be a string or a 64-bit integer')


def _usable(identifier: Any) -> RequestId | None:
    if isinstance(identifier, str) or (isinstance(identifier, int) and not isinstance(identifier, bool)):
        return identifier if _in_range(identifier) else None
    return None


def _in_range(identifier: Any) -> bool:
    return not isinstance(identifier, int) or -(2**63) <= identifier < 2**63


def _refuse_constant(name: str) -> Any:
    raise ValueError(name)


def _without_surrogates(value: Any) -> Any:
    if isinstance(value, str):
        return _SURROGATE.sub("\ufffd", value)
    if isinstance(value, list):
        return [_without_surrogates(item) for item in value]
    if isinstance(value, dict):
        return {_without_surrogates(key): _without_surrogates(item) for key, item in value.items()}
    return value


def request_frame(identifier: RequestId, method: str, params: bytes) -> bytes:
    """A request whose params are JSON already."""
    return b'{"jsonrpc":"2.0","id":%b,"method":%b,"params":%b}' % (encode(identifier), encode(method), params)


def notification_frame(method: str, params: bytes) -> bytes:
    """A notification whose params are JSON already."""
    return b'{"jsonrpc":"2.0","method":%b,"params":%b}' % (encode(method), params)


def result_frame(identifier: RequestId, result: bytes) -> bytes:
    """The successful answer to a request; the result is JSON already."""
    return b'{"jsonrpc":"2.0","id":%b,"result":%b}' % (encode(identifier), result)


def error_frame(identifier: RequestId | None, code: int, message: str, data: Any = None) -> bytes:
    """The answer to a request that failed, or to a frame that was no request (id None)."""
    error = {"code": code, "message": message} if data is None else {"code": code, "message": message, "data": data}
    return b'{"jsonrpc":"2.0","id":%b,"error":%b}' % (encode(identifier), encode(error))
