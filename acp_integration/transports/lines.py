"""Bytes in, lines out, with a bound on the memory an endless line can take."""

from acp_integration.transports.transport import Frame, Oversize


class LineSplitter:
    """Cuts a byte stream into lines; a line over the limit is dropped and reported when it ends."""

    __slots__ = ("_limit", "_parts", "_size", "_skipping")

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._parts: list[bytes] = []
        self._size = 0
        self._skipping = False

    def feed(self, data: bytes) -> list[Frame]:
        """The lines that end in these bytes, without their line break."""
        first, *rest = data.split(b"\n")
        if not rest:
            self._add(first)
            return []
        self._add(first)
        lines = [self._cut()]
        tail = rest.pop()
        lines.extend(line if len(line) <= self._limit else Oversize(self._limit) for line in rest)
        self._add(tail)
        return lines

    def finish(self) -> list[Frame]:
        """The last line, if the stream ended without a line break."""
        return [self._cut()] if self._parts or self._skipping else []

    def _add(self, part: bytes) -> None:
        if not part or self._skipping:
            return
        self._size += len(part)
        if self._size > self._limit:
            self._skipping = True
            self._parts.clear()
        else:
            self._parts.append(part)

    def _cut(self) -> Frame:
        line: Frame = Oversize(self._limit) if self._skipping else b"".join(self._parts)
        self._parts.clear()
        self._size = 0
        self._skipping = False
        return line
