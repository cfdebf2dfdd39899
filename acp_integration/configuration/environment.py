"""The environment as a source: exact names under our prefix, a JSON object for whatever holds several keys."""

from collections.abc import Iterator, Mapping

from acp_integration.configuration.keys import Path, canonical, environment_name
from acp_integration.configuration.schema import Schema
from acp_integration.configuration.sources import Entry, Source, flatten, json_object


def environment_source(
    environ: Mapping[str, str], prefix: Path, schema: Schema, name: str = "environment", *, file: bool = False
) -> Source:
    """The variables of one settings object; with an empty prefix no variable is ours."""
    start = environment_name(prefix) + "_"
    paths = _paths(schema)
    entries = (
        entry
        for variable, value in environ.items()
        if prefix and variable.startswith(start)
        for entry in _entries(_path(variable.removeprefix(start), paths), variable, value, schema)
    )
    return Source(name, tuple(entries), file=file, environment=True)


def named_environment_source(
    environ: Mapping[str, str], prefix: Path, schema: Schema, name: str = "environment", *, file: bool = False
) -> Source:
    """The variables of named settings objects: the first segment of every entry is a name."""
    whole = environment_name(prefix)
    paths = _paths(schema)
    entries = (
        entry
        for variable, value in environ.items()
        if prefix and (variable == whole or variable.startswith(whole + "_"))
        for entry in _named_entries(variable.removeprefix(whole)[1:], variable, value, schema, paths)
    )
    return Source(name, tuple(entries), file=file, environment=True)


def _paths(schema: Schema) -> dict[str, Path]:
    # The longest first, for a name in front of a key may hold underscores too.
    paths = {environment_name(path): path for path in (*schema.keys, *schema.sections)}
    return dict(sorted(paths.items(), key=lambda item: len(item[0]), reverse=True))


def _path(rest: str, paths: Mapping[str, Path]) -> Path:
    return paths.get(rest, (canonical(rest),))


def _entries(path: Path, variable: str, value: str, schema: Schema) -> Iterator[Entry]:
    if path in schema.sections:
        return _expanded(path, variable, value)
    return iter([Entry(path, variable, value)])


def _named_entries(rest: str, variable: str, value: str, schema: Schema, paths: Mapping[str, Path]) -> Iterator[Entry]:
    for key, path in paths.items():
        name = rest.removesuffix(f"_{key}")
        if name != rest:
            for entry in _entries(path, variable, value, schema):
                yield Entry((canonical(name), *entry.path), entry.spelled, entry.value)
            return
    if not rest or value.lstrip().startswith("{"):
        yield from _expanded((canonical(rest),) if rest else (), variable, value)
    else:
        # Neither a key nor a whole client: a stranger's variable, which belongs to no name.
        yield Entry(("", canonical(rest)), variable, value)


def _expanded(path: Path, variable: str, value: str) -> Iterator[Entry]:
    found = json_object(value)
    if found is None:
        yield Entry(path, variable, value)
        return
    for inner, item in flatten(found):
        yield Entry((*path, *inner), ".".join((variable, *inner)), item)
