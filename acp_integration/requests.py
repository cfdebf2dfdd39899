"""Requests of a handler to the client: each is raced against the cancel of the call that asks it.

One helper for every kind. At the cancel the request is withdrawn and ends at once, also when the client ignores the
withdrawal for ever; asked when already cancelled it is not sent. A late answer is dropped.
"""

import asyncio
from collections.abc import Callable

import msgspec

from acp_integration.cancellation import Cause
from acp_integration.connection import Pending
from acp_integration.errors import TurnCancelled, TurnError
from acp_integration.turns import Call


async def ask(call: Call, method: str, params: bytes, *, timeout: float | None) -> msgspec.Raw:
    """Send a request to the client and wait for its result.

    Args:
        call: the call on whose behalf it is asked.
        method: the protocol method.
        params: the params as JSON.
        timeout: how long to wait, in seconds; None waits for as long as the call lives.

    Raises:
        TurnCancelled: if the call was cancelled, or is answered already.
        PeerError: if the client answered with an error.
        TurnError: if the client did not answer in time.
        ConnectionClosed: if the connection ended.
    """
    if call.answered or call.cancellation.is_cancelled:
        raise TurnCancelled(call.session_id)
    cancelled_by_end = call.connection.when_input_ends(lambda: call.cancel(Cause.CONNECTION, None))
    if call.cancellation.is_cancelled:
        raise TurnCancelled(call.session_id)
    pending = call.connection.request(method, params, call.session_id)
    undo = [cancelled_by_end, call.cancellation.on_cancel(lambda: _end(pending, TurnCancelled(call.session_id)))]
    if timeout is not None:
        undo.append(_expire_after(timeout, pending))
    try:
        return await pending.future
    finally:
        for take_back in undo:
            take_back()
        call.connection.withdraw(pending)


def _end(pending: Pending, error: Exception) -> None:
    if not pending.future.done():
        pending.future.set_exception(error)


def _expire_after(seconds: float, pending: Pending) -> Callable[[], None]:
    error = TurnError(f"The client did not answer {pending.method} within {seconds:g} s")
    return asyncio.get_running_loop().call_later(seconds, _end, pending, error).cancel
