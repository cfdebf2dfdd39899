"""What a session is set up with and described by: modes, config options, system prompt, its line in a list."""

from collections.abc import Mapping
from typing import Any

import msgspec

from acp_integration.wire.content import ContentBlock
from acp_integration.wire.structure import Choice, Conflict, Items, Lenient, WireStruct, always_written


class SessionMode(WireStruct):
    """One mode an agent can work in."""

    id: str
    name: str
    description: Lenient[str | None] = None


class SessionModeState(WireStruct):
    """The modes of a session and the current one."""

    current_mode_id: str
    available_modes: Items[list[SessionMode]] = msgspec.field(default_factory=always_written)


class ConfigSelectItem(Choice):
    """One line of a selection: a value, or a group of values."""

    __slots__ = ()

    @classmethod
    def choose(cls, value: Mapping[str, Any]) -> type[Choice] | None:
        """A group wherever there is no value."""
        return SessionConfigSelectOption if "value" in value else SessionConfigSelectGroup


class SessionConfigSelectOption(WireStruct, ConfigSelectItem):
    """A value that can be selected."""

    value: str
    name: str
    description: Lenient[str | None] = None


class SessionConfigSelectGroup(WireStruct, ConfigSelectItem):
    """Values shown under one heading."""

    group: str
    name: str
    options: Items[list[SessionConfigSelectOption]] = msgspec.field(default_factory=always_written)


class SessionConfigOptionSelect(WireStruct, tag_field="type", tag="select"):
    """An option with one of several values; its `options` are all values or all groups."""

    id: str
    name: str
    current_value: str
    options: list[ConfigSelectItem]
    description: Lenient[str | None] = None
    category: Lenient[str | None] = None

    def __post_init__(self) -> None:
        if len({type(item) for item in self.options}) > 1:
            raise Conflict("options", "must be all values or all groups")


class SessionConfigOptionBoolean(WireStruct, tag_field="type", tag="boolean"):
    """An option that is on or off; only for clients that announce it."""

    id: str
    name: str
    current_value: bool
    description: Lenient[str | None] = None
    category: Lenient[str | None] = None


SessionConfigOption = SessionConfigOptionSelect | SessionConfigOptionBoolean


class SystemPrompt(WireStruct):
    """A client's addition to an agent's system prompt; `mode` is "append", "override" or something newer."""

    mode: str
    content: list[ContentBlock]


class SessionInfo(WireStruct):
    """One session in a list; `updated_at` is ISO 8601."""

    session_id: str
    cwd: str
    additional_directories: Items[list[str]] = msgspec.field(default_factory=list)
    title: Lenient[str | None] = None
    updated_at: Lenient[str | None] = None
    archived: Lenient[bool | None] = None
