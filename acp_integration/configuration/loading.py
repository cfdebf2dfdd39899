"""From sources to a settings object: one validation, and every bad key in one error."""

import logging
from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Generic, TypeVar

import msgspec

from acp_integration.configuration.fields import Section
from acp_integration.configuration.keys import Path, canonical, dotted, prefix_path
from acp_integration.configuration.kinds import MASK
from acp_integration.configuration.merging import Merge, Winner
from acp_integration.configuration.places import Places
from acp_integration.configuration.schema import Key, schema_of
from acp_integration.configuration.shown import shown
from acp_integration.configuration.sources import Entry, Source, mapping_source
from acp_integration.configuration.values import Invalid, InvalidEntries
from acp_integration.errors import ConfigurationError, UnknownKey

logger = logging.getLogger(__name__)

S = TypeVar("S", bound=Section)


class Loaded(msgspec.Struct, Generic[S], frozen=True):
    """Settings, and for each key that was set the place it came from.

    Attributes:
        settings: what was read.
        origins: the name of the place for each documented key without its prefix.
    """

    settings: S
    origins: Mapping[str, str]


def read_mapping(settings: type[S], mapping: Mapping[Any, Any], prefix: str) -> S:
    """Settings from one mapping, nothing else looked at."""
    path = prefix_path(prefix)
    return _read(settings, [mapping_source(mapping, path)], path).settings


def read(settings: type[S], places: Places, prefix: str) -> Loaded[S]:
    """Settings from every source.

    Raises:
        ConfigurationError: with one line for every bad key; an `UnknownKey` if all of them are unknown.
    """
    path = prefix_path(prefix)
    return _read(settings, places.sources(path, schema_of(settings)), path)


def read_named(settings: type[S], places: Places, prefix: str) -> dict[str, Loaded[S]]:
    """Settings for each name that stands under a prefix, in the order the names are found.

    Raises:
        ConfigurationError: with one line for every bad key of all names.
    """
    path = prefix_path(prefix)
    sources = places.sources(path, schema_of(settings), named=True)
    names = dict.fromkeys(_name(entry) for source in sources for entry in source.entries)
    readings = {name: _Reading(settings, _of(sources, name), (*path, name or "<name>")) for name in names}
    _complain(readings.values())
    return {name: reading.loaded() for name, reading in readings.items() if name}


def _name(entry: Entry) -> str:
    """The name an entry belongs to; empty for what stands where a table of keys should, and for strangers."""
    return canonical(entry.path[0]) if len(entry.path) > 1 else ""


def _of(sources: Sequence[Source], name: str) -> list[Source]:
    return [
        msgspec.structs.replace(
            source,
            entries=tuple(
                msgspec.structs.replace(entry, path=entry.path[1:]) for entry in source.entries if _name(entry) == name
            ),
        )
        for source in sources
    ]


def _read(settings: type[S], sources: Sequence[Source], prefix: Path) -> Loaded[S]:
    reading = _Reading(settings, sources, prefix)
    _complain([reading])
    return reading.loaded()


class _Reading(Generic[S]):
    """The merge of some sources and its validation."""

    def __init__(self, settings: type[S], sources: Sequence[Source], prefix: Path) -> None:
        self.merge = Merge(schema_of(settings), prefix).add_all(sources)
        self.invalid: list[str] = []
        self.settings: S | None = None
        try:
            self.settings = settings(**self.merge.nested())
        except InvalidEntries as error:
            self.invalid = _lines(error, self.merge)

    def loaded(self) -> Loaded[S]:
        """What was read; called only when nothing is wrong."""
        assert self.settings is not None
        origins = {dotted(path): _origin(winner) for path, winner in self.merge.winners.items()}
        return Loaded(self.settings, MappingProxyType(origins))


def _origin(winner: Winner) -> str:
    return f"environment ({winner.entry.spelled})" if winner.source.name == "environment" else winner.source.name


def _lines(error: InvalidEntries, merge: Merge) -> list[str]:
    by_location = {merge.schema.location(path): path for path in merge.winners}
    problems = ((problem, by_location[location]) for location, problem in error.problems.items())
    return [_line(problem, merge.winners[path], merge.schema.key(path)) for problem, path in problems]


def _line(problem: Invalid, winner: Winner, key: Key) -> str:
    value = MASK if key.kind.secret else shown(winner.entry.value if problem.culprit is None else problem.culprit)
    return winner.source.locate(f"{winner.entry.spelled}={value} is not {problem.what}")


def _complain(readings: Iterable[_Reading[S]]) -> None:
    found = list(readings)
    ignored = {name: hint for reading in found for name, hint in reading.merge.ignored.items()}
    if ignored:
        hints = ", ".join(f"{name} (did you mean {hint}?)" for name, hint in ignored.items())
        logger.warning("Ignored variables that set no known key: %s", hints)
    unknown = {line: key for reading in found for line, key in reading.merge.unknown.items()}
    wrong = [line for reading in found for line in (*reading.merge.problems, *reading.invalid)]
    if wrong:
        raise ConfigurationError(*unknown, *wrong)
    if unknown:
        raise UnknownKey(*unknown, keys=tuple(unknown.values()))
