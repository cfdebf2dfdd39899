"""What a handler holds of a session."""

from collections.abc import Mapping, Sequence
from typing import Any

from acp_integration.connection import Connection, Pace
from acp_integration.context.updates import UpdateFrames
from acp_integration.sessions import SessionRecord


class AcpSession:
    """One session: what is known of it, and everything that can be sent to it, in a turn or between turns."""

    __slots__ = ("_connection", "_frames", "_pace", "_record")

    def __init__(self, record: SessionRecord, connection: Connection) -> None:
        self._record = record
        self._connection = connection
        self._frames = UpdateFrames(record.id)
        self._pace = Pace(connection.transport)

    @property
    def id(self) -> str:
        """The session's id."""
        return self._record.id

    @property
    def cwd(self) -> str:
        """The absolute path the session works in."""
        return self._record.cwd

    @property
    def additional_directories(self) -> Sequence[str]:
        """More directories the session may use, absolute paths."""
        return self._record.additional_directories

    @property
    def mcp_servers(self) -> Sequence[Any]:
        """The MCP servers the client asked for."""
        return self._record.mcp_servers

    @property
    def mode(self) -> str | None:
        """The id of the session's mode now, or None without modes."""
        return self._record.mode

    @property
    def options(self) -> Mapping[str, str | bool]:
        """The session's config options now."""
        return self._record.options

    @property
    def state(self) -> dict[str, Any]:
        """What the agent keeps for the session: JSON values."""
        return self._record.state

    async def send_message(self, text: str) -> None:
        """Send a piece of the agent's message."""
        await self._send(self._frames.message(text))

    async def send_thought(self, text: str) -> None:
        """Send a piece of the agent's reasoning."""
        await self._send(self._frames.thought(text))

    async def send_user_message(self, text: str) -> None:
        """Send a piece of a user's message, as a replay does."""
        await self._send(self._frames.user_message(text))

    async def send_update(self, update: Any) -> None:
        """Send any update given in its wire form."""
        await self._send(self._frames.update(update))

    async def _send(self, frame: bytes) -> None:
        if self._record.held is not None:
            self._record.held.append(frame)
            return
        self._connection.write(frame, self._record.id)
        if self._pace.due():
            await self._pace.rest()
