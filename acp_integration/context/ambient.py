"""The turn of the code that runs now, wherever it runs: child tasks and executor threads included."""

from contextvars import ContextVar
from typing import Any, Final

from acp_integration.context.turn import PromptContext

_turn: Final[ContextVar[PromptContext | None]] = ContextVar("acp_turn", default=None)
enter_turn: Final = _turn.set


def current_turn() -> PromptContext | None:
    """The turn this code runs in, or None."""
    return _turn.get()


async def publish(update: Any) -> None:
    """Send an update to the session of the turn this code runs in; outside a turn nothing is sent."""
    turn = _turn.get()
    if turn is None:
        return
    if isinstance(update, str):
        await turn.send_message(update)
    else:
        await turn.send_update(update)
