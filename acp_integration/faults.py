"""The one boundary between a Python exception and what the peer is told of it."""

import asyncio
import logging
import os
from typing import Any

import msgspec

from acp_integration import jsonrpc, sdk
from acp_integration.errors import PeerError, RequestError, TurnCancelled
from acp_integration.wire.decoding import InvalidParams

logger = logging.getLogger(__name__)


class Fault(msgspec.Struct, frozen=True):
    """The error object a request is answered with."""

    code: int
    message: str
    data: Any = None


CANCELLED = Fault(jsonrpc.REQUEST_CANCELLED, "Request cancelled")


def method_not_found(method: str) -> Fault:
    """The agent has no handler for the method, so it was never advertised."""
    return Fault(jsonrpc.METHOD_NOT_FOUND, f"Method not found: {method}")


def unknown_session(session_id: str) -> Fault:
    """The session is not open on this connection."""
    return Fault(jsonrpc.RESOURCE_NOT_FOUND, "Unknown session", {"sessionId": session_id})


def fault_of(error: BaseException, method: str) -> Fault:
    """Turn what a handler raised into what the peer may know; the rest is logged here and only here."""
    if isinstance(error, RequestError | PeerError):
        return _chosen(error.code, error.message, error.data, error, method)
    if isinstance(error, InvalidParams):
        return Fault(jsonrpc.INVALID_PARAMS, f"Invalid params: {error}")
    if isinstance(error, TurnCancelled | asyncio.CancelledError):
        return CANCELLED
    if sdk.is_request_error(error):
        return _chosen(error.code, str(error), error.data, error, method)  # type: ignore[attr-defined]  # checked by is_request_error
    return _internal(error, method)


def _chosen(code: Any, message: Any, data: Any, error: BaseException, method: str) -> Fault:
    """The answer that a handler chose, if it is one: a request whose answer cannot be written stays unanswered."""
    try:
        jsonrpc.error_frame(None, code, message, data)
    except Exception:
        logger.warning("The %s handler raised an error that is no JSON", method, exc_info=True)
        return _internal(error, method)
    usable = isinstance(code, int) and isinstance(message, str)
    return Fault(int(code), message, data) if usable else _internal(error, method)


def _internal(error: BaseException, method: str) -> Fault:
    correlation = os.urandom(8).hex()
    logger.warning("The %s handler failed (correlation id %s)", method, correlation, exc_info=error)
    return Fault(jsonrpc.INTERNAL_ERROR, "Internal error", {"correlationId": correlation})
