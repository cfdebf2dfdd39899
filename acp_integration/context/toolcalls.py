"""A tool call that is announced, kept up to date while it runs, and settled however it ends."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any
from uuid import uuid4

from acp_integration.context.sender import Sender
from acp_integration.context.terminals import Terminal
from acp_integration.jsonrpc import encode
from acp_integration.types import to_wire


class RunningToolCall:
    """A tool call that was announced and is not settled yet.

    Attributes:
        id: names the call in its session.
    """

    __slots__ = ("_content", "_locations", "_sender", "_status", "id")

    def __init__(self, sender: Sender, identifier: str) -> None:
        self.id = identifier
        self._sender = sender
        self._content: list[dict[str, Any]] = []
        self._locations: list[dict[str, Any]] = []
        self._status = "completed"

    async def add(self, *content: Any) -> None:
        """Show more of what the call produces: text, or content blocks."""
        await self._show(*({"type": "content", "content": to_wire(block)} for block in content))

    async def add_diff(self, path: str, new_text: str, old_text: str | None = None) -> None:
        """Show a change of a file; without an old text it is a new file. `path` is absolute."""
        diff = {"type": "diff", "path": path, "newText": new_text}
        await self._show(diff if old_text is None else {**diff, "oldText": old_text})

    async def add_terminal(self, terminal: Terminal | str) -> None:
        """Show a terminal as it runs, also after it was released."""
        identifier = terminal if isinstance(terminal, str) else terminal.id
        await self._show({"type": "terminal", "terminalId": identifier})

    async def add_location(self, path: str, line: int | None = None) -> None:
        """Tell which file is worked on, so that the client can follow. `path` is absolute, `line` 1-based."""
        self._locations.append({"path": path} if line is None else {"path": path, "line": line})
        await self.update(locations=self._locations)

    async def set_output(self, output: Any) -> None:
        """Give the raw result, any JSON value."""
        await self.update(rawOutput=output)

    async def set_title(self, title: str) -> None:
        """Change the title."""
        await self.update(title=title)

    async def fail(self, *content: Any) -> None:
        """Settle as failed when the block ends, and show why."""
        self._status = "failed"
        if content:
            await self.add(*content)

    async def update(self, **fields: Any) -> None:
        """Change any fields, named as on the wire."""
        await self._sender.send_update({"sessionUpdate": "tool_call_update", "toolCallId": self.id, **fields})

    def settle(self, status: str | None = None) -> None:
        """Send the last status; waits for nothing, so that a cancelled call is settled too."""
        settled = {"sessionUpdate": "tool_call_update", "toolCallId": self.id, "status": status or self._status}
        self._sender.write(encode(settled))

    async def _show(self, *content: dict[str, Any]) -> None:
        self._content.extend(content)
        await self.update(content=self._content)


@asynccontextmanager
async def tool_call(sender: Sender, announced: dict[str, Any]) -> AsyncIterator[RunningToolCall]:
    """Announce a tool call and settle it: completed, or failed if the block raises."""
    call = RunningToolCall(sender, announced.get("toolCallId") or f"call_{uuid4().hex}")
    await sender.send_update({"sessionUpdate": "tool_call", **announced, "toolCallId": call.id})
    try:
        yield call
    except BaseException:
        call.settle("failed")
        raise
    call.settle()


def announcement(
    title: str, kind: str, *, identifier: str | None, status: str, raw_input: Any, locations: Sequence[Any]
) -> dict[str, Any]:
    """The fields of a new tool call."""
    places = [{"path": place} if isinstance(place, str) else to_wire(place) for place in locations]
    optional = {"toolCallId": identifier, "rawInput": raw_input, "locations": places or None}
    given = {name: value for name, value in optional.items() if value is not None}
    return {"title": title, "kind": kind, "status": status, **given}
