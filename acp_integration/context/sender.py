"""Everything that can be sent to a session, written once for a session and for a turn."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Final

from acp_integration.connection import Pace
from acp_integration.context import updates
from acp_integration.context.capabilities import require, supports
from acp_integration.jsonrpc import encode
from acp_integration.peer import Peer
from acp_integration.sessions import SessionRecord
from acp_integration.transports.transport import flow_of
from acp_integration.turns import Call
from acp_integration.types import ToolCall, to_wire
from acp_integration.wire.updates import UPDATE_GATES

_KEEP: Final = object()


class Sender:
    """Sends updates to one session, in the order of the calls.

    A send returns when its update is queued; now and then it waits for the loop and for a slow reader. Updates to a
    session that was closed are dropped, and so are those of a turn that was answered.
    """

    __slots__ = ("_connection", "_head", "_pace", "_peer", "_record", "_turn")

    def __init__(self, record: SessionRecord, peer: Peer, turn: Call | None = None) -> None:
        self._record = record
        self._peer = peer
        self._connection = peer.connection
        self._turn = turn
        self._head = updates.frame_head(record.id)
        self._pace = Pace(flow_of(peer.connection.transport, record.id))

    async def send_message(self, content: Any, *, message_id: str | None = None) -> None:
        """Send a piece of the agent's message: text, or a content block.

        Args:
            content: text, a value of `acp_integration.types`, a mapping of the wire form, or a model of the SDK.
            message_id: the same for all pieces of one message, if given.
        """
        if self.write(updates.chunk(updates.MESSAGE, content, message_id)):  # the one call that is made for every token
            await self.rest()

    async def send_thought(self, content: Any, *, message_id: str | None = None) -> None:
        """Send a piece of the agent's reasoning: text, or a content block."""
        await self._send(updates.chunk(updates.THOUGHT, content, message_id))

    async def send_user_message(self, content: Any, *, message_id: str | None = None) -> None:
        """Send a piece of a user's message, as a replay does: text, or a content block."""
        await self._send(updates.chunk(updates.USER_MESSAGE, content, message_id))

    async def send_update(self, update: Any) -> None:
        """Send any update: an `Update`, a `ToolCall`, a mapping of the wire form, or a model of the SDK.

        Raises:
            CapabilityMissing: if the client did not announce what this kind of update needs.
            TypeError: if it is no update.
        """
        await self._send(self.encoded(update))

    async def send_plan(self, entries: Sequence[Any]) -> None:
        """Send the whole plan, replacing the one before: each entry a text, or its wire form."""
        await self._send(encode(updates.plan(entries)))

    async def send_commands(self, commands: Mapping[str, str] | Sequence[Any]) -> None:
        """Send the commands a user can give: descriptions by name, or the wire form of each."""
        await self._send(encode(updates.commands(commands)))

    async def send_mode(self, mode_id: str) -> None:
        """Switch the session's mode and tell the client.

        Raises:
            RequestError: -32602 if the session has modes and this is none of them.
        """
        self._record.check_mode(mode_id)
        self._record.mode = mode_id
        await self._send(encode({"sessionUpdate": "current_mode_update", "currentModeId": mode_id}))

    async def send_config_options(self, values: Mapping[str, str | bool] | None = None) -> None:
        """Change config options of the session, and send the client the complete list.

        Raises:
            RequestError: -32602 if there is no such option, or an option has no such value.
        """
        for name, value in (values or {}).items():
            self._record.set_option(name, value)
        booleans = supports(self._peer.capabilities, "session.configOptions.boolean")
        options = self._record.shown_options(booleans=booleans)
        await self._send(encode({"sessionUpdate": "config_option_update", "configOptions": options}))

    async def send_usage(self, used: int, size: int, *, cost: float | None = None, currency: str = "USD") -> None:
        """Send how many tokens of the context window are used, and what the session has cost so far."""
        await self._send(encode(updates.usage(used, size, cost, currency)))

    async def send_session_info(self, *, title: Any = _KEEP, updated_at: Any = _KEEP) -> None:
        """Send the session's title and time of its last change; None clears, what is left out stays."""
        moment = updated_at.isoformat() if isinstance(updated_at, datetime) else updated_at
        fields = {"title": title, "updatedAt": moment}
        given = {name: value for name, value in fields.items() if value is not _KEEP}
        if isinstance(title, str | None):
            self._record.title = title
        await self._send(encode({"sessionUpdate": "session_info_update", **given}))

    def encoded(self, update: Any) -> bytes:
        """The JSON of an update the client is able to take; raises as `send_update` does."""
        wire = self._of_tool_call(update) if isinstance(update, ToolCall) else to_wire(update)
        kind = wire.get("sessionUpdate")
        if not isinstance(kind, str):
            raise TypeError('This is no update: it has no "sessionUpdate"')
        gate = UPDATE_GATES.get(kind)
        if gate is not None:
            require(self._peer.capabilities, gate)
        if kind == "session_info_update" and isinstance(wire.get("title", ...), str | None):
            self._record.title = wire["title"]
        return encode(wire)

    def write(self, update: bytes) -> bool:
        """Queue the JSON of an update, in no time; True if the sender should `rest` now."""
        record, turn = self._record, self._turn
        if record.closed or (turn is not None and turn.answered):
            return False
        if record.held is not None:
            record.held.append(update)
            return False
        if record.journal is None or record.replaying:
            self._connection.write(updates.frame(self._head, update), record.id)
            return self._pace.due()
        record.journal.put(update, lambda: self._write_kept(update))
        return self._pace.due() or record.journal.congested

    async def rest(self) -> None:
        """Let everybody else run, and the session store and the reader catch up."""
        journal = self._record.journal
        if journal is not None and journal.congested:
            await journal.settle()
        await self._pace.rest()

    async def _send(self, update: bytes) -> None:
        if self.write(update):
            await self.rest()

    def _write_kept(self, update: bytes) -> None:
        if self._turn is None or not self._turn.answered:  # it may have been, while a session store kept the update
            self._connection.write(updates.frame(self._head, update), self._record.id)

    def _of_tool_call(self, call: ToolCall) -> dict[str, Any]:
        first = call.id not in self._record.tool_calls
        self._record.tool_calls.add(call.id)
        return {"sessionUpdate": "tool_call" if first else "tool_call_update", **call.to_wire()}
