"""What is kept of each session that is open on one connection."""

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any, Protocol

import msgspec

from acp_integration.errors import RequestError
from acp_integration.jsonrpc import INVALID_PARAMS, RESOURCE_NOT_FOUND


class Journal(Protocol):
    """What keeps the prompts and updates of one open session."""

    @property
    def congested(self) -> bool:
        """Whether so much waits to be kept that a sender should `settle` before it goes on."""
        ...

    def put(self, update: bytes, leave: Callable[[], None]) -> None:
        """Keep an update, and call `leave`, in order, once it may go to the client."""
        ...

    async def begin(self, prompt: Iterable[bytes], taken_over: Callable[[], object]) -> bool:
        """Keep a prompt, which begins a turn; `taken_over` is called if the session is opened elsewhere meanwhile.

        Args:
            prompt: an update for each block of the prompt, for those who see the session later.
            taken_over: called at most once, before the turn's end.

        Returns:
            False if it was opened elsewhere before.
        """
        ...

    async def end(self, changes: Mapping[str, Any]) -> None:
        """End a turn: return when all that was put has left, with what changed beside it saved."""
        ...

    async def release(self) -> None:
        """Let somebody else hold the session: a turn that is under way is cancelled, and has ended on return."""
        ...

    async def settle(self, changes: Mapping[str, Any] | None = None) -> None:
        """Return when all that was put has left, with what changed of the session beside it saved."""
        ...

    async def history(self) -> Sequence[Mapping[str, Any]]:
        """All that was kept, oldest first."""
        ...


class SessionRecord(msgspec.Struct, eq=False):
    """One open session; handlers see it through `AcpSession`.

    Attributes:
        modes: the modes to choose from, in their wire form.
        config: the config options to choose from, in their wire form, each with the value it has now.
        held: updates that wait for the answer which creates the session; None once it was written.
        journal: what keeps the session, if something does.
        replaying: whether what is sent was kept before, and is not to be kept again.
        closed: whether the session is open no more, so that updates to it are dropped.
        tool_calls: the ids of the tool calls that were announced as values.
        used: when the session was last used, on the monotonic clock, in seconds.
    """

    id: str
    cwd: str = ""
    additional_directories: Sequence[str] = ()
    mcp_servers: Sequence[Any] = ()
    title: str | None = None
    mode: str | None = None
    modes: Sequence[Mapping[str, Any]] = ()
    config: Sequence[Mapping[str, Any]] = ()
    state: dict[str, Any] = msgspec.field(default_factory=dict)
    held: list[bytes] | None = None
    journal: Journal | None = None
    replaying: bool = False
    closed: bool = False
    tool_calls: set[str] = msgspec.field(default_factory=set)
    used: float = msgspec.field(default_factory=time.monotonic)

    @property
    def options(self) -> dict[str, str | bool]:
        """The values of the config options, by id."""
        return {option["id"]: option["currentValue"] for option in self.config} if self.config else {}

    def kept(self) -> dict[str, Any]:
        """What a journal keeps of the session beside its prompts and updates."""
        return {"title": self.title, "mode": self.mode, "options": self.options, "state": self.state}

    def takes_option(self, config_id: str, value: str | bool) -> bool:
        """Whether there is such a config option, and it can have the value."""
        return any(option["id"] == config_id and _takes(option, value) for option in self.config)

    def check_mode(self, mode_id: str) -> None:
        """Do nothing if the session can be in a mode.

        Raises:
            RequestError: -32602 if the session has modes and this is none of them.
        """
        if self.modes and mode_id not in (mode["id"] for mode in self.modes):
            raise RequestError(INVALID_PARAMS, "Invalid params: params.modeId is none of the session's modes")

    def check_option(self, config_id: str, value: str | bool) -> None:
        """Do nothing if a config option can have a value.

        Raises:
            RequestError: -32602 if there is no such option, or it has no such value.
        """
        option = next((option for option in self.config if option["id"] == config_id), None)
        if option is None:
            raise RequestError(INVALID_PARAMS, "Invalid params: params.configId is none of the session's options")
        if not _takes(option, value):
            raise RequestError(INVALID_PARAMS, "Invalid params: params.value is none of the option's values")

    def set_option(self, config_id: str, value: str | bool) -> None:
        """Change a config option; raises as `check_option` does."""
        self.check_option(config_id, value)
        self.config = tuple(
            {**option, "currentValue": value} if option["id"] == config_id else option for option in self.config
        )

    def shown_options(self, *, booleans: bool) -> list[Mapping[str, Any]]:
        """The complete list of config options as a client is shown it, without the booleans if it knows none."""
        return [option for option in self.config if booleans or option.get("type") != "boolean"]


def _takes(option: Mapping[str, Any], value: str | bool) -> bool:
    if option.get("type") == "boolean":
        return isinstance(value, bool)
    listed = option.get("options", ())
    values = [item for entry in listed for item in entry.get("options", (entry,))]
    return isinstance(value, str) and value in (item["value"] for item in values)


class Sessions:
    """The sessions of one connection, by id."""

    def __init__(self) -> None:
        self._records: dict[str, SessionRecord] = {}
        self.when_opened: Callable[[str], object] = _nobody
        self.when_closed: Callable[[str], object] = _nobody

    def __len__(self) -> int:
        return len(self._records)

    def __iter__(self) -> Iterator[SessionRecord]:
        return iter(tuple(self._records.values()))

    def __contains__(self, session_id: str) -> bool:
        return session_id in self._records

    def add(self, record: SessionRecord) -> SessionRecord:
        """Open a session, in the place of an older one with the same id."""
        replaced = self._records.get(record.id)
        if replaced is not None and replaced is not record:
            replaced.closed = True
        self._records[record.id] = record
        self.when_opened(record.id)
        return record

    def find(self, session_id: str | None) -> SessionRecord | None:
        """The session with that id, or None."""
        return self._records.get(session_id) if session_id is not None else None

    def get(self, session_id: str) -> SessionRecord:
        """The session with that id.

        Raises:
            RequestError: -32002 if it is not open on this connection.
        """
        record = self._records.get(session_id)
        if record is None:
            raise RequestError(RESOURCE_NOT_FOUND, "Unknown session", {"sessionId": session_id})
        return record

    async def settle(self) -> None:
        """Return when what was sent to the sessions was kept and has left."""
        for record in self:
            if record.journal is not None:
                with suppress(OSError):  # the store has said in the log what failed
                    await record.journal.settle()

    def remove(self, session_id: str) -> SessionRecord | None:
        """Close a session; unknown ids are no error."""
        record = self._records.pop(session_id, None)
        if record is not None:
            record.closed = True
            self.when_closed(record.id)
        return record


def _nobody(_session_id: str) -> None:
    """Nobody is told."""
