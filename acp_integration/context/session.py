"""What a handler holds of a session."""

from collections.abc import Mapping, Sequence
from typing import Any

from acp_integration.context.sender import Sender
from acp_integration.types import Update


class AcpSession(Sender):
    """One session: what is known of it, and everything that can be sent to it, in a turn or between turns."""

    __slots__ = ()

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
        """The session's config options now: values by id."""
        return self._record.options

    @property
    def state(self) -> dict[str, Any]:
        """What the agent keeps for the session: JSON values, saved by the session store at the end of each turn."""
        return self._record.state

    async def history(self) -> Sequence[Update]:
        """The prompts and updates of the session so far, prompts as user messages; empty without a session store."""
        journal = self._record.journal
        return () if journal is None else [Update(raw, self.id) for raw in await journal.history()]
