"""What a dependency refused with, in the words of the protocol."""

from collections.abc import Mapping
from typing import Any, Final

from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException

from acp_integration import jsonrpc
from acp_integration.errors import RequestError

_CODES: Final[Mapping[int, int]] = {
    400: jsonrpc.INVALID_PARAMS,
    401: jsonrpc.AUTH_REQUIRED,
    403: jsonrpc.AUTH_REQUIRED,
    404: jsonrpc.RESOURCE_NOT_FOUND,
    422: jsonrpc.INVALID_PARAMS,
}


def as_request_error(error: Exception) -> Exception:
    """The protocol error that stands for a refusal of FastAPI's; any other exception as it is.

    The detail of an `HTTPException` below 500 was written for the caller and is passed on, unlike the text of an error.
    """
    if isinstance(error, RequestValidationError):
        return RequestError(
            jsonrpc.INVALID_PARAMS, "Invalid params", {"errors": [_place(item) for item in error.errors()]}
        )
    if isinstance(error, HTTPException) and error.status_code < 500:
        code = _CODES.get(error.status_code, jsonrpc.INTERNAL_ERROR)
        detail: object = error.detail  # FastAPI allows any JSON value
        text = detail if isinstance(detail, str) else "Refused by the application"
        return RequestError(code, text, {"status": error.status_code})
    return error


def _place(item: Mapping[str, Any]) -> dict[str, Any]:
    """Where a value was wrong and why, without the value."""
    return {"path": ".".join(str(part) for part in item["loc"]), "reason": str(item["type"])}
