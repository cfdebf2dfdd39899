"""Where sync handlers run: the seam through which a framework hands over its threads."""

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import Protocol, TypeVar

T = TypeVar("T")


class HandlerExecutor(Protocol):
    """Runs sync handlers on threads; the runtime never shuts down an executor it was given."""

    async def run(self, function: Callable[[], T]) -> T:
        """Run a blocking function on a thread of its own, with the caller's context variables copied into it.

        Cancelling the caller returns at once and leaves the thread to end by itself.
        """
        ...

    def scope(self) -> AbstractAsyncContextManager[None]:
        """A context entered around every handler call, async ones too, and left when its request is answered."""
        ...
