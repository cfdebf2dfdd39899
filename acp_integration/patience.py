"""What takes long is said on standard error: a client may be waiting for it."""

import sys
import threading
import time
from types import TracebackType
from typing import Final, Self

SLOW_SECONDS: Final = 2.0


class Patience:
    """Says of a block that it is slow, and in the end how slow it was; of a quick one nothing.

    Args:
        name: which program speaks.
        doing: what it is busy with.
        done: what it has done in the end.
    """

    def __init__(self, name: str, doing: str, done: str) -> None:
        self._name, self._doing, self._done = name, doing, done
        self._began = time.monotonic()
        self._said = False
        self._timer = threading.Timer(SLOW_SECONDS, self._say_slow)
        self._timer.daemon = True

    def __enter__(self) -> Self:
        self._timer.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._timer.cancel()
        if self._said and kind is None:
            self._say(f"{self._done} after {time.monotonic() - self._began:.1f} s")

    def _say_slow(self) -> None:
        self._said = True
        self._say(f"still {self._doing} after {SLOW_SECONDS:g} s; a client that waits may lose patience")

    def _say(self, text: str) -> None:
        sys.stderr.write(f"{self._name}: {text}\n")
        sys.stderr.flush()
