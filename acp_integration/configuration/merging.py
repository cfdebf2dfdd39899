"""One merge of all sources: which value wins, where it came from, and what is wrong with the keys themselves."""

from collections.abc import Sequence
from typing import Any

import msgspec

from acp_integration.configuration.keys import Path, canonical, canonical_path, dotted, environment_name
from acp_integration.configuration.kinds import MASK
from acp_integration.configuration.schema import Schema, nearest
from acp_integration.configuration.shown import shown
from acp_integration.configuration.sources import SECTIONS, Entry, Source, json_object


class Winner(msgspec.Struct, frozen=True):
    """The entry that decides a key, and its source."""

    entry: Entry
    source: Source


class Merge(msgspec.Struct):
    """The sources of one settings object, added in order of precedence.

    Attributes:
        winners: the entry that decides each key.
        problems: one line for each entry that can be no value of any key.
        unknown: the keys that nobody knows, by the line that says so.
        ignored: unknown variables, by the name of the one most like each.
    """

    schema: Schema
    prefix: Path
    winners: dict[Path, Winner] = msgspec.field(default_factory=dict)
    problems: list[str] = msgspec.field(default_factory=list)
    unknown: dict[str, str] = msgspec.field(default_factory=dict)
    ignored: dict[str, str] = msgspec.field(default_factory=dict)

    def add_all(self, sources: Sequence[Source]) -> "Merge":
        """Add every source, the strongest first."""
        for source in sources:
            for entry in source.strays:
                self._stray(entry, source)
            for entry in source.entries:
                self._add(entry, source)
        return self

    def _add(self, entry: Entry, source: Source) -> None:
        path = self.schema.resolve(entry.path)
        if path is None:
            self._add_unresolved(entry, source)
        elif path in self.schema.keys and self.schema.keys[path].kind.table:
            self._add_table(entry, source)
        elif not _blank(entry.value) or (path not in self.schema.keys and entry.value is not None):
            # The entry of a table may well be empty text.
            self._decide(path, entry, source)

    def _add_unresolved(self, entry: Entry, source: Source) -> None:
        path = canonical_path(entry.path)
        if path and path not in self.schema.sections:
            self._unknown(entry, source)
        elif not _blank(entry.value):
            expected = "a JSON object" if source.environment else "a table of keys"
            self._wrong(entry, source, shown(entry.value), expected)

    def _add_table(self, entry: Entry, source: Source) -> None:
        found = json_object(entry.value)
        if found is not None:
            for name, value in found.items():
                self._add(Entry((*entry.path, name), f"{entry.spelled}.{name}", value), source)
        elif not _blank(entry.value):
            self._wrong(entry, source, MASK, "a JSON object")

    def _decide(self, path: Path, entry: Entry, source: Source) -> None:
        winner = self.winners.setdefault(path, Winner(entry, source))
        if winner.source is source and winner.entry.value != entry.value:
            line = f"{winner.entry.spelled} and {entry.spelled} are the same key: keep one"
            self.problems.append(source.locate(line))

    def _wrong(self, entry: Entry, source: Source, value: str, expected: str) -> None:
        self.problems.append(source.locate(f"{entry.spelled}={value} is not {expected}"))

    def _stray(self, entry: Entry, source: Source) -> None:
        root, section, *rest = entry.path
        self._refuse(entry.spelled, ".".join((root, nearest(canonical(section), SECTIONS), *rest)), source)

    def _unknown(self, entry: Entry, source: Source) -> None:
        known = self.schema.nearest(entry.path)
        if source.environment:
            self.ignored[entry.spelled] = environment_name(self.prefix, known)
            return
        # The prefix stays as it was written, so that the hint can be pasted over the mistake.
        written = entry.spelled.removesuffix(".".join(entry.path))
        self._refuse(entry.spelled, written + dotted(known), source)

    def _refuse(self, spelled: str, known: str, source: Source) -> None:
        self.unknown[source.locate(f"{spelled} is not a known key; did you mean {known}?")] = spelled

    def nested(self) -> dict[str, Any]:
        """What won, nested by the names of fields."""
        tree: dict[str, Any] = {}
        for path, winner in self.winners.items():
            *parents, last = self.schema.location(path)
            section = tree
            for name in parents:
                section = section.setdefault(name, {})
            section[last] = winner.entry.value
        return tree


def _blank(value: object) -> bool:
    return value is None or (isinstance(value, str) and not value.strip())
