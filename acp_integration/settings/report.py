"""Effective settings and where each one came from, for people who wonder."""

from collections.abc import Iterator, Mapping
from functools import reduce
from types import MappingProxyType
from typing import Any, Final

import msgspec

from acp_integration.configuration.keys import dotted
from acp_integration.configuration.schema import Key, schema_of
from acp_integration.configuration.shown import duration_text, shown, size_text
from acp_integration.settings.sections import Settings

DEFAULT: Final = "default"
UNSET: Final = "unset"
NOTHING: Final[Mapping[str, str]] = MappingProxyType({})


class Row(msgspec.Struct, frozen=True):
    """One key.

    Attributes:
        key: the key without its prefix.
        value: its effective value as a user would write it; secrets are masked.
        origin: where the value came from.
    """

    key: str
    value: str
    origin: str


def report(settings: Settings, origins: Mapping[str, str] = NOTHING) -> list[Row]:
    """One row for every key of some settings, in the order of the documentation.

    Args:
        settings: what is in effect.
        origins: where keys came from; a key that is set and stands not in it was set in code.
    """
    return [_row(settings, key, origins) for key in schema_of(type(settings)).keys.values()]


def _row(settings: Settings, key: Key, origins: Mapping[str, str]) -> Row:
    name = dotted(key.path)
    value = reduce(getattr, (segment.replace("-", "_") for segment in key.path), settings)
    if value == key.unset:
        return Row(name, default_text(type(settings), key), DEFAULT)
    found = dict.fromkeys(_origins_of(name, origins))
    return Row(name, _written(key, value), ", ".join(found) or "arguments")


def _origins_of(name: str, origins: Mapping[str, str]) -> Iterator[str]:
    # The entries of a table may come from several places.
    return (origin for key, origin in origins.items() if key == name or key.startswith(f"{name}."))


def default_text(settings: type[Settings], key: Key) -> str:
    """What is in effect when a key is not set."""
    found = [value for options in settings.defaults for value in _defaults(options, key)]
    return _default_written(key, found[0]) if found and found[0] not in ((), None) else _without_default(key, found)


def _without_default(key: Key, found: list[Any]) -> str:
    if key.kind.label == "true or false":
        return "false"
    return "no limit" if found[:1] == [None] and "duration" in key.kind.label else UNSET


def _defaults(options: Any, key: Key) -> Iterator[Any]:
    name = key.path[-1].replace("-", "_")
    return (getattr(options, field.name) for field in msgspec.structs.fields(options) if field.name == name)


def _default_written(key: Key, value: Any) -> str:
    if "duration" in key.kind.label:
        return duration_text(value)
    return _written(key, value)


def _written(key: Key, value: Any) -> str:
    return size_text(value) if key.kind.label == "size" else shown(value)
