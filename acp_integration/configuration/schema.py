"""What keys a settings class has, found by walking its fields."""

from collections.abc import Iterable, Iterator
from difflib import get_close_matches
from functools import lru_cache
from typing import Any

import msgspec

from acp_integration.configuration.fields import Section, fields_of
from acp_integration.configuration.keys import Path, canonical, canonical_path
from acp_integration.configuration.kinds import Kind


class Key(msgspec.Struct, frozen=True):
    """One thing that can be set.

    Attributes:
        path: the segments of the key behind the prefix, in the documented spelling.
        kind: what the key holds.
        meaning: one line of documentation.
        unset: the value of the field when nobody sets the key.
    """

    path: Path
    kind: Kind
    meaning: str
    unset: Any


class Schema(msgspec.Struct, frozen=True):
    """All keys of one settings class.

    Attributes:
        keys: the keys by path, in the order of the class.
        sections: the paths that hold keys and no value.
    """

    keys: dict[Path, Key]
    sections: frozenset[Path]

    def resolve(self, raw: Path) -> Path | None:
        """The documented path of a key as somebody wrote it, or None if there is no such key.

        What follows the key of a table is one name, kept as it was written.
        """
        path = canonical_path(raw)
        if path in self.keys:
            return path
        for length in range(1, len(path)):
            key = self.keys.get(path[:length])
            if key is not None and key.kind.table:
                return (*path[:length], ".".join(raw[length:]))
        return None

    def key(self, path: Path) -> Key:
        """The key that a resolved path belongs to."""
        return self.keys.get(path) or self.keys[path[:-1]]

    def nearest(self, raw: Path) -> Path:
        """The known key that is spelled most like an unknown one."""
        candidates = {"-".join(path): path for path in self.keys}
        return candidates[nearest("-".join(canonical_path(raw)), candidates)]

    def location(self, path: Path) -> Path:
        """The names of the fields that lead to a resolved path, and behind them the name of a table's entry."""
        depth = len(self.key(path).path)
        return (*(segment.replace("-", "_") for segment in path[:depth]), *path[depth:])


def nearest(word: str, words: Iterable[str]) -> str:
    """The word that is spelled most like another one."""
    return get_close_matches(word, list(words), n=1, cutoff=0.0)[0]


@lru_cache(maxsize=16)
def schema_of(settings: type[Section]) -> Schema:
    """The schema of a settings class."""
    keys = {key.path: key for key in _walk(settings, ())}
    sections = frozenset(path[:length] for path in keys for length in range(1, len(path)))
    return Schema(keys, sections)


def _walk(section: type[Section], path: Path) -> Iterator[Key]:
    for field in fields_of(section):
        inner = (*path, canonical(field.name))
        if field.section is not None:
            yield from _walk(field.section, inner)
        else:
            assert field.kind is not None
            yield Key(inner, field.kind, field.meaning, field.default)
