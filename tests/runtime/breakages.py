"""Faults to switch on one by one: each takes one rule out of the runtime, and the model-based test must notice."""

import asyncio
from collections.abc import Callable
from functools import partial
from typing import Any, cast

import pytest

from acp_integration import requests
from acp_integration.cancellation import Cancellation, Cause
from acp_integration.connection import Connection
from acp_integration.context.sender import Sender
from acp_integration.context.turn import PromptContext
from acp_integration.dispatch import Dispatch
from acp_integration.runtime import AgentRuntime
from acp_integration.scheduling import Lane, Schedule
from acp_integration.turns import Call, Turn

Patch = pytest.MonkeyPatch
BREAKAGES: dict[str, Callable[[Patch], None]] = {}


def breakage(function: Callable[[Patch], None]) -> Callable[[Patch], None]:
    BREAKAGES[function.__name__] = function
    return function


@breakage
def no_reservation(patch: Patch) -> None:
    patch.setattr(Dispatch, "_objection", lambda self, call, lane: None)


@breakage
def admission_at_start(patch: Patch) -> None:
    reserve, begin = Dispatch._reserve, Dispatch._begin

    def late_reserve(self: Dispatch, call: Call, lane: Lane, request: Any) -> None:
        reserve(self, call, lane, request)
        if call.is_turn:
            self._turns.pop(call.session_id, None)

    def reserving_begin(self: Dispatch, call: Call) -> None:
        if isinstance(call, Turn) and not call.answered:
            self._turns[call.session_id] = call
        begin(self, call)

    patch.setattr(Dispatch, "_reserve", late_reserve)
    patch.setattr(Dispatch, "_begin", reserving_begin)


@breakage
def answer_before_updates(patch: Patch) -> None:
    begin = Sender.__init__

    class Late:
        def __init__(self, connection: Connection) -> None:
            self.write = partial(asyncio.get_running_loop().call_soon, connection.write)

    def lagging(self: Sender, record: Any, peer: Any, turn: Any = None) -> None:
        begin(self, record, peer, turn)
        self._connection = cast(Connection, Late(peer.connection))

    patch.setattr(Sender, "__init__", lagging)


@breakage
def late_updates_sent(patch: Patch) -> None:
    begin = PromptContext.__init__

    def unbound(self: PromptContext, call: Call, record: Any) -> None:
        begin(self, call, record)
        self._turn = None

    patch.setattr(PromptContext, "__init__", unbound)


@breakage
def cancel_kept_for_the_next_turn(patch: Patch) -> None:
    cancel_turn = Dispatch.cancel_turn
    begin = Dispatch._begin

    def keep(self: Dispatch, session_id: str, cause: Cause) -> None:
        if session_id not in self._turns:
            self.__dict__.setdefault("kept", set()).add(session_id)
        cancel_turn(self, session_id, cause)

    def apply(self: Dispatch, call: Call) -> None:
        if call.is_turn and call.session_id in self.__dict__.get("kept", set()):
            self.__dict__["kept"].discard(call.session_id)
            call.cancel(Cause.SESSION_CANCEL, None)
        begin(self, call)

    patch.setattr(Dispatch, "cancel_turn", keep)
    patch.setattr(Dispatch, "_begin", apply)


@breakage
def reservation_kept_on_error(patch: Patch) -> None:
    release = Dispatch.release

    def keep(self: Dispatch, call: Call) -> None:
        turn = self._turns.get(call.session_id or "")
        release(self, call)
        if turn is call and isinstance(call, Turn) and call.__dict__.get("failing"):
            self._turns[call.session_id or ""] = call

    fail = Call.fail

    def failing(self: Call, fault: Any) -> bool:
        self.__dict__["failing"] = True
        return fail(self, fault)

    patch.setattr(Dispatch, "release", keep)
    patch.setattr(Call, "fail", failing)


@breakage
def session_freed_behind_the_answer(patch: Patch) -> None:
    release = Dispatch.release

    def later(self: Dispatch, call: Call) -> None:
        loop = asyncio.get_running_loop()

        def hops(left: int) -> None:
            if left:
                loop.call_soon(hops, left - 1)
            else:
                release(self, call)

        hops(6)

    patch.setattr(Dispatch, "release", later)


@breakage
def answered_twice(patch: Patch) -> None:
    claim = Call._claim

    def again(self: Call) -> bool:
        claim(self)
        return True

    patch.setattr(Call, "_claim", again)


@breakage
def controls_in_no_order(patch: Patch) -> None:
    patch.setattr(Schedule, "_predecessors", lambda self, job: [])


@breakage
def requests_not_withdrawn(patch: Patch) -> None:
    patch.setattr(requests, "_end", lambda answer, error: None)
    patch.setattr(Call, "_grace_over", lambda self: None)


@breakage
def cancel_told_to_nobody(patch: Patch) -> None:
    patch.setattr(Cancellation, "_deliver", lambda self: None)
    patch.setattr(Call, "_grace_over", lambda self: None)


@breakage
def handler_runs_after_an_early_cancel(patch: Patch) -> None:
    def cancel(self: Call, cause: Cause, grace: float | None) -> bool:
        if self.answered or not self.cancellation.cancel(cause):
            return False
        if self.hard is not None and grace is not None:
            self.start_timer(grace, self._grace_over)
        self.__dict__["early"] = self.hard is None
        return True

    settle = Turn.settle

    def settle_as_returned(self: Turn, result: bytes) -> None:
        if self.__dict__.get("early"):
            self.succeed(result)
        else:
            settle(self, result)

    patch.setattr(Call, "cancel", cancel)
    patch.setattr(Turn, "settle", settle_as_returned)


@breakage
def close_cancels_nothing(patch: Patch) -> None:
    async def leave(self: AgentRuntime, turn: Turn) -> None:
        return None

    patch.setattr(AgentRuntime, "_let_end", leave)


@breakage
def end_of_input_loses_answers(patch: Patch) -> None:
    async def leave(self: AgentRuntime) -> None:
        return None

    patch.setattr(AgentRuntime, "_wind_down", leave)
