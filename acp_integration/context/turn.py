"""What a prompt handler holds of its turn."""

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any
from uuid import uuid4

import msgspec

from acp_integration.caller import HttpRequest
from acp_integration.connection import Pace
from acp_integration.context.session import AcpSession
from acp_integration.context.updates import UpdateFrames
from acp_integration.errors import TurnCancelled
from acp_integration.jsonrpc import encode
from acp_integration.requests import ask
from acp_integration.turns import Call


class PromptContext:
    """One turn as its async handler sees it."""

    __slots__ = ("_frames", "_pace", "call", "session")

    def __init__(self, call: Call, session: AcpSession) -> None:
        self.call = call
        self.session = session
        self._frames = UpdateFrames(session.id)
        self._pace = Pace(call.connection.transport)

    @property
    def text(self) -> str:
        """The text blocks of the prompt, joined."""
        return "".join(block.text for block in self.content if hasattr(block, "text"))

    @property
    def content(self) -> Sequence[Any]:
        """The content blocks of the prompt."""
        blocks: Sequence[Any] = self.call.params.prompt
        return blocks

    @property
    def user(self) -> Any:
        """Who opened the connection, as the application calls it; None on stdio."""
        return self.call.peer.caller.user

    @property
    def http(self) -> HttpRequest | None:
        """The request that opened the connection; None on stdio."""
        return self.call.peer.caller.http

    @property
    def is_cancelled(self) -> bool:
        """Whether the turn was cancelled."""
        return self.call.cancellation.is_cancelled

    def on_cancel(self, callback: Callable[[], object]) -> None:
        """Call back once when the turn is cancelled; keep it quick."""
        self.call.cancellation.on_cancel(callback)

    async def wait_cancelled(self) -> None:
        """Return when the turn is cancelled."""
        await self.call.cancellation.wait()

    def raise_if_cancelled(self) -> None:
        """Raise TurnCancelled if the turn was cancelled."""
        if self.is_cancelled:
            raise TurnCancelled(self.session.id)

    async def send_message(self, text: str) -> None:
        """Send a piece of the agent's message; dropped after the turn's answer."""
        await self._send(self._frames.message(text))

    async def send_thought(self, text: str) -> None:
        """Send a piece of the agent's reasoning; dropped after the turn's answer."""
        await self._send(self._frames.thought(text))

    async def send_update(self, update: Any) -> None:
        """Send any update given in its wire form; dropped after the turn's answer."""
        await self._send(self._frames.update(update))

    @asynccontextmanager
    async def tool_call(self, title: str, *, kind: str = "other", raw_input: Any = None) -> AsyncIterator[str]:
        """Announce a tool call and settle it: completed, or failed if the block raises."""
        identifier = f"call_{uuid4().hex}"
        announced = {"sessionUpdate": "tool_call", "toolCallId": identifier, "title": title, "kind": kind, "status": "in_progress"}
        await self.send_update(announced if raw_input is None else {**announced, "rawInput": raw_input})
        try:
            yield identifier
        except BaseException:
            await self._settle_tool_call(identifier, "failed")
            raise
        await self._settle_tool_call(identifier, "completed")

    async def request_permission(self, tool_call: Any, options: Sequence[Any]) -> str | None:
        """Ask the client for permission: the id of the chosen option, or None if it was cancelled."""
        params = {"sessionId": self.session.id, "toolCall": tool_call, "options": list(options)}
        try:
            raw = await ask(self.call, "session/request_permission", encode(params), timeout=None)
        except TurnCancelled:
            return None
        outcome = msgspec.json.decode(raw).get("outcome", {})
        return outcome.get("optionId") if outcome.get("outcome") == "selected" else None

    async def _settle_tool_call(self, identifier: str, status: str) -> None:
        await self.send_update({"sessionUpdate": "tool_call_update", "toolCallId": identifier, "status": status})

    async def _send(self, frame: bytes) -> None:
        if self.call.answered:
            return
        self.call.connection.write(frame, self.session.id)
        if self._pace.due():
            await self._pace.rest()
