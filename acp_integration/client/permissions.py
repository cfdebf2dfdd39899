"""Ready-made answers to an agent that asks whether a tool call may go on."""

import inspect
from collections.abc import Awaitable, Callable
from typing import Any

import anyio

from acp_integration.wire.client import RequestPermissionRequest

Decision = Callable[[RequestPermissionRequest], Awaitable[str | None]]


def deny(request: RequestPermissionRequest) -> str | None:
    """The option that rejects, this once rather than always; None, which cancels, if none is offered."""
    return option_of_kind(request, "reject_once", "reject_always")


def allow(request: RequestPermissionRequest) -> str | None:
    """The option that allows, this once and never always; None, which cancels, if it is not offered."""
    return option_of_kind(request, "allow_once")


def allow_kinds(*kinds: str) -> Decision:
    """A permission handler that allows tool calls of some kinds, such as ``read``, and denies the rest."""

    async def decide(request: RequestPermissionRequest) -> str | None:
        return allow(request) if request.tool_call.kind in kinds else deny(request)

    return decide


def ask(
    decide: Callable[[RequestPermissionRequest], bool | Awaitable[bool]], *, timeout: float | None = None
) -> Decision:
    """A permission handler that asks somebody: allowed once for True, denied for False and when nobody answers in time.

    Args:
        decide: an async function, or a sync one that does not block.
        timeout: how long to wait for it, in seconds.
    """

    async def answer(request: RequestPermissionRequest) -> str | None:
        with anyio.move_on_after(timeout):
            decided = decide(request)
            if await decided if inspect.isawaitable(decided) else decided:
                return allow(request)
        return deny(request)

    return answer


def option_of_kind(request: RequestPermissionRequest, *kinds: str) -> str | None:
    """The id of the first option of the first kind that is offered."""
    for kind in kinds:
        for option in request.options:
            if option.kind == kind:
                return option.option_id
    return None


def is_denial(request: RequestPermissionRequest, answer: Any) -> bool:
    """Whether an answer keeps the tool call from going on."""
    outcome = answer.get("outcome") if isinstance(answer, dict) else None
    chosen = outcome.get("optionId") if isinstance(outcome, dict) else None
    allowed = {option.option_id for option in request.options if option.kind.startswith("allow")}
    return chosen not in allowed
