"""What keys a settings class has, found by walking its fields."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from difflib import get_close_matches
from functools import lru_cache
from typing import Any, get_args

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from acp_integration.configuration.keys import Path, canonical, canonical_path
from acp_integration.configuration.kinds import Kind


@dataclass(frozen=True, slots=True)
class Key:
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


@dataclass(frozen=True, slots=True)
class Schema:
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
def schema_of(settings: type[BaseModel]) -> Schema:
    """The schema of a settings class."""
    keys = {key.path: key for key in _walk(settings, ())}
    sections = frozenset(path[:length] for path in keys for length in range(1, len(path)))
    return Schema(keys, sections)


def _walk(section: type[BaseModel], path: Path) -> Iterator[Key]:
    for name, field in section.model_fields.items():
        inner = (*path, canonical(name))
        annotation = field.annotation
        if isinstance(annotation, type) and issubclass(annotation, BaseModel):
            yield from _walk(annotation, inner)
        else:
            yield Key(inner, _kind_of(field), field.description or "", field.get_default(call_default_factory=True))


def _kind_of(field: FieldInfo) -> Kind:
    # The metadata of an optional field stands at the member of its union, not at the field.
    inner = [mark for argument in get_args(field.annotation) for mark in getattr(argument, "__metadata__", ())]
    return next(mark for mark in (*field.metadata, *inner) if isinstance(mark, Kind))
