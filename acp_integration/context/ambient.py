"""The turn of the code that runs now, wherever it runs: child tasks and executor threads included."""

from collections.abc import Awaitable, Generator
from contextvars import ContextVar
from typing import Any, Final

from acp_integration.context import updates
from acp_integration.context.blocking import SyncPromptContext
from acp_integration.context.sender import Sender
from acp_integration.context.turn import PromptContext

_turn: Final[ContextVar[PromptContext | None]] = ContextVar("acp_turn", default=None)
enter_turn: Final = _turn.set


def current_turn() -> PromptContext | SyncPromptContext | None:
    """The turn this code runs in, or None: on the loop its async context, in a thread its blocking one."""
    turn = _turn.get()
    return turn if turn is None or turn.bridge.at_home else SyncPromptContext(turn)


def publish(update: Any) -> Awaitable[None]:
    """Send text, a content block or an update to the session of the turn this code runs in.

    It is sent by the call itself, from async code, its child tasks and executor threads. What is returned may be
    awaited in async code, which keeps pace with a slow reader. Outside a turn nothing is sent.

    Raises:
        CapabilityMissing: if the client did not announce what this kind of update needs.
        TurnCancelled: in a thread, if the turn was cancelled.
        TypeError: if it is neither text, nor a content block, nor an update.
    """
    turn = _turn.get()
    if turn is None:
        return _SENT
    update = encoded(update, turn)
    if turn.bridge.at_home:
        return _Pacing(turn) if turn.write(update) else _SENT
    turn.bridge.send(turn, update)
    return _SENT


def encoded(item: Any, sender: Sender) -> bytes:
    """The JSON of the update that sends text, a content block, or an update itself."""
    if isinstance(item, str):
        return updates.chunk(updates.MESSAGE, item)
    if updates.is_content(item):
        return updates.chunk(updates.MESSAGE, item)
    return sender.encoded(item)


class _Sent:
    """Nothing to wait for."""

    def __await__(self) -> Generator[Any, None, None]:
        return
        yield


class _Pacing:
    """A sender that should let others run."""

    def __init__(self, sender: Sender) -> None:
        self._sender = sender

    def __await__(self) -> Generator[Any, None, None]:
        return self._sender.rest().__await__()


_SENT: Final = _Sent()
