"""Where settings come from: every source as a flat list of entries that keep the spelling the user wrote."""

import json
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from acp_integration.configuration.keys import Path, canonical_path


class Entry(msgspec.Struct, frozen=True):
    """One value that somebody wrote.

    Attributes:
        path: the segments of the key behind the prefix, as written.
        spelled: the whole key as written.
        value: the value as written.
    """

    path: Path
    spelled: str
    value: Any


class Source(msgspec.Struct, frozen=True):
    """The entries of one place, all under one prefix.

    Attributes:
        name: how a report calls the place, for example ``environment`` or the path of a file.
        entries: what stands there.
        file: whether error texts say in which file a key stands.
        environment: whether keys are variables of a process: strangers invent those, so unknown ones are no error.
        strays: keys of our own namespace in no section that exists.
    """

    name: str
    entries: tuple[Entry, ...]
    file: bool = False
    environment: bool = False
    strays: tuple[Entry, ...] = ()

    def locate(self, line: str) -> str:
        """An error line, with the file it is about."""
        return f"{line} (in {self.name})" if self.file else line


ROOT = "acp"
SECTIONS = ("agent", "client", "clients")


def flatten(mapping: Mapping[Any, Any], path: Path = ()) -> Iterator[tuple[Path, Any]]:
    """Every value of a mapping that is nested, dotted or both, with the segments of its key as written."""
    for key, value in mapping.items():
        inner = (*path, *str(key).split("."))
        if isinstance(value, Mapping):
            yield from flatten(value, inner)
        else:
            yield inner, value


def mapping_source(mapping: Mapping[Any, Any], prefix: Path, name: str = "mapping", *, file: bool = False) -> Source:
    """The entries of a mapping that stand under a prefix; all other keys are somebody else's."""
    entries = [Entry(path, ".".join(path), value) for path, value in flatten(mapping)]
    depth = len(prefix)
    ours = (
        Entry(entry.path[depth:], entry.spelled, entry.value)
        for entry in entries
        if canonical_path(entry.path[:depth]) == prefix
    )
    strays = tuple(entry for entry in entries if prefix[:1] == (ROOT,) and _is_stray(canonical_path(entry.path)))
    return Source(name, tuple(ours), file=file, strays=strays)


def _is_stray(path: Path) -> bool:
    return len(path) > 1 and path[0] == ROOT and path[1] not in SECTIONS


def arguments_source(arguments: Mapping[Any, Any]) -> Source:
    """Keys given in code, without a prefix."""
    return mapping_source(arguments, (), "arguments")


def json_object(value: Any) -> Mapping[str, Any] | None:
    """The object that a text of JSON is, or None for every other text."""
    if not isinstance(value, str) or not value.lstrip().startswith("{"):
        return None
    try:
        found = json.loads(value)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None
