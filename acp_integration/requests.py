"""Requests of a handler to the client: each is raced against the cancel of the call that asks it.

One helper for every kind. At the cancel the request is withdrawn and ends at once, also when the client ignores the
withdrawal for ever; asked when already cancelled it is not sent. A late answer is dropped.
"""

import asyncio
import logging
from collections.abc import Callable
from typing import TypeAlias

import msgspec

from acp_integration.cancellation import Cause
from acp_integration.errors import TurnCancelled, TurnError
from acp_integration.turns import Call
from acp_integration.wire.repair import Malformed

logger = logging.getLogger(__name__)

Answer: TypeAlias = "asyncio.Future[msgspec.Raw]"


Late = Callable[[msgspec.Raw], object]


async def ask(
    call: Call, method: str, params: bytes, *, timeout: float | None, late: Late | None = None
) -> msgspec.Raw:
    """Send a request to the client and wait for its result.

    Args:
        call: the call on whose behalf it is asked.
        method: the protocol method.
        params: the params as JSON.
        timeout: how long to wait, in seconds; None waits for as long as the call lives.
        late: takes a result that comes after the request was given up, when it holds something to give back.

    Raises:
        TurnCancelled: if the call was cancelled, or is answered already.
        PeerError: if the client answered with an error.
        TurnError: if the client did not answer in time.
        ConnectionClosed: if the connection ended.
    """
    if call.answered or call.cancellation.is_cancelled:
        raise TurnCancelled(call.session_id)
    await _everything_said(call)
    if call.answered:
        raise TurnCancelled(call.session_id)
    cancelled_by_end = call.connection.when_input_ends(lambda: call.cancel(Cause.CONNECTION, None))
    if call.cancellation.is_cancelled:
        raise TurnCancelled(call.session_id)
    pending = call.connection.request(method, params, call.session_id)
    answer: Answer = asyncio.get_running_loop().create_future()
    pending.future.add_done_callback(lambda settled: _relay(settled, answer, late))
    undo = [cancelled_by_end, call.cancellation.on_cancel(lambda: _end(answer, TurnCancelled(call.session_id)))]
    if timeout is not None:
        error = TurnError(f"The client did not answer {method} within {timeout:g} s")
        undo.append(asyncio.get_running_loop().call_later(timeout, _end, answer, error).cancel)
    try:
        return await answer
    finally:
        for take_back in undo:
            take_back()
        if late is None:
            call.connection.withdraw(pending)
        else:
            call.connection.cancel(pending)


async def _everything_said(call: Call) -> None:
    """Return when the updates sent before have left: a session store may keep them back for a moment."""
    record = call.record or call.peer.sessions.find(call.session_id)
    if record is not None and record.journal is not None:
        await record.journal.settle()


def _end(answer: Answer, error: Exception) -> None:
    if not answer.done():
        answer.set_exception(error)


def _relay(settled: Answer, answer: Answer, late: Late | None) -> None:
    if settled.cancelled():
        return
    error = settled.exception()
    if error is not None:
        _end(answer, error)  # type: ignore[arg-type]  # a connection settles with exceptions only
    elif not answer.done():
        answer.set_result(settled.result())
    elif late is not None:
        _take_back(settled.result(), late)


def _take_back(result: msgspec.Raw, late: Late) -> None:
    try:
        late(result)
    except Malformed:
        logger.debug("An answer that came too late cannot be read", exc_info=True)
