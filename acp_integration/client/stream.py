"""A prompt as an async iterator: its updates as they come, then its result."""

from collections.abc import AsyncIterator, Awaitable, Callable

from acp_integration.client.prompts import PromptHandle, PromptResult
from acp_integration.types import Update


class PromptStream(AsyncIterator[Update | PromptResult]):
    """The updates of one turn as they come, then its result.

    The prompt is sent when the first item is asked for. Left before its end, by `aclose`, by the end of an ``async
    with`` or because nobody holds it any more, the turn is cancelled. A wait for one item can be cancelled and tried
    again.
    """

    def __init__(self, start: Callable[[], Awaitable[PromptHandle]]) -> None:
        self._reading = _Reading(start)

    @property
    def result(self) -> PromptResult | None:
        """The result, once it was read."""
        return self._reading.result

    def __aiter__(self) -> "PromptStream":
        return self

    def __anext__(self) -> Awaitable[Update | PromptResult]:
        # Not a coroutine of this object: the traceback of a cancelled one would keep it alive, and its turn running.
        return self._reading.next()

    async def __aenter__(self) -> "PromptStream":
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Cancel the turn unless it has ended."""
        self._reading.leave()

    def __del__(self) -> None:
        self._reading.leave()


class _Reading:
    """How far one stream was read."""

    def __init__(self, start: Callable[[], Awaitable[PromptHandle]]) -> None:
        self._start = start
        self._handle: PromptHandle | None = None
        self._position = 0
        self._left = False
        self.result: PromptResult | None = None

    async def next(self) -> Update | PromptResult:
        """The next item."""
        if self.result is not None or self._left:
            raise StopAsyncIteration
        if self._handle is None:
            self._handle = await self._start()
        item = await self._handle.next(self._position)
        self._position += 1
        if isinstance(item, PromptResult):
            self.result = item
        return item

    def leave(self) -> None:
        """Read no more."""
        self._left = True
        if self._handle is not None:
            self._handle.leave()
