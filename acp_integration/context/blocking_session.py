"""A session for sync handlers: every send hands its update to the connection's loop."""

from collections.abc import Mapping, Sequence
from typing import Any

from acp_integration.context import updates
from acp_integration.context.bridge import ThreadBridge
from acp_integration.context.sender import Sender
from acp_integration.context.session import AcpSession
from acp_integration.jsonrpc import encode
from acp_integration.types import Update


class SyncSender:
    """The sends of `Sender` for a handler's thread; each raises TurnCancelled once the call was cancelled."""

    __slots__ = ("_bridge", "_sender")

    def __init__(self, sender: Sender, bridge: ThreadBridge) -> None:
        self._sender = sender
        self._bridge = bridge

    def send_message(self, content: Any, *, message_id: str | None = None) -> None:
        """Send a piece of the agent's message: text, or a content block."""
        self._bridge.send(self._sender, updates.chunk(updates.MESSAGE, content, message_id))

    def send_thought(self, content: Any, *, message_id: str | None = None) -> None:
        """Send a piece of the agent's reasoning: text, or a content block."""
        self._bridge.send(self._sender, updates.chunk(updates.THOUGHT, content, message_id))

    def send_user_message(self, content: Any, *, message_id: str | None = None) -> None:
        """Send a piece of a user's message, as a replay does: text, or a content block."""
        self._bridge.send(self._sender, updates.chunk(updates.USER_MESSAGE, content, message_id))

    def send_update(self, update: Any) -> None:
        """Send any update: an `Update`, a `ToolCall`, a mapping of the wire form, or a model of the SDK.

        Raises:
            CapabilityMissing: if the client did not announce what this kind of update needs.
            TypeError: if it is no update.
        """
        self._bridge.send(self._sender, self._sender.encoded(update))

    def send_plan(self, entries: Sequence[Any]) -> None:
        """Send the whole plan, replacing the one before: each entry a text, or its wire form."""
        self._bridge.send(self._sender, encode(updates.plan(entries)))

    def send_commands(self, commands: Mapping[str, str] | Sequence[Any]) -> None:
        """Send the commands a user can give: descriptions by name, or the wire form of each."""
        self._bridge.send(self._sender, encode(updates.commands(commands)))

    def send_mode(self, mode_id: str) -> None:
        """Switch the session's mode and tell the client; raises RequestError -32602 for an unknown mode."""
        self._bridge.run(self._sender.send_mode, mode_id)

    def send_config_options(self, values: Mapping[str, str | bool] | None = None) -> None:
        """Change config options of the session, and send the client the complete list."""
        self._bridge.run(self._sender.send_config_options, values)

    def send_usage(self, used: int, size: int, *, cost: float | None = None, currency: str = "USD") -> None:
        """Send how many tokens of the context window are used, and what the session has cost so far."""
        self._bridge.send(self._sender, encode(updates.usage(used, size, cost, currency)))

    def send_session_info(self, **changes: Any) -> None:
        """Send the session's `title` and `updated_at`; None clears, what is left out stays."""

        async def send() -> None:
            await self._sender.send_session_info(**changes)

        self._bridge.run(send)


class SyncAcpSession(SyncSender):
    """One session as a sync handler sees it; used on the handler's own threads."""

    __slots__ = ("_session",)

    def __init__(self, session: AcpSession, bridge: ThreadBridge) -> None:
        super().__init__(session, bridge)
        self._session = session

    @property
    def id(self) -> str:
        """The session's id."""
        return self._session.id

    @property
    def cwd(self) -> str:
        """The absolute path the session works in."""
        return self._session.cwd

    @property
    def additional_directories(self) -> Sequence[str]:
        """More directories the session may use, absolute paths."""
        return self._session.additional_directories

    @property
    def mcp_servers(self) -> Sequence[Any]:
        """The MCP servers the client asked for."""
        return self._session.mcp_servers

    @property
    def mode(self) -> str | None:
        """The id of the session's mode now, or None without modes."""
        return self._session.mode

    @property
    def options(self) -> Mapping[str, str | bool]:
        """The session's config options now: values by id."""
        return self._session.options

    @property
    def state(self) -> dict[str, Any]:
        """What the agent keeps for the session: JSON values, saved by the session store at the end of each turn."""
        return self._session.state

    def history(self) -> Sequence[Update]:
        """The prompts and updates of the session so far, prompts as user messages; empty without a session store."""
        return self._bridge.run(self._session.history)
