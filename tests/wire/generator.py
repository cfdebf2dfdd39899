"""Messages made by walking the schema, and broken on purpose."""

from collections.abc import Iterator, Mapping
from copy import deepcopy
from random import Random
from typing import Any

STRINGS = ["", "a", "text", "boolean", "stdio", "/tmp", "é\U0001f600", "form", "sess-1", "object"]
JUNK: list[Any] = [
    None,
    True,
    False,
    0,
    -1,
    1.0,
    1.5,
    70000,
    "",
    "x",
    "boolean",
    [],
    {},
    [None],
    [{}],
    {"a": 1},
    {"type": "q"},
]
ONE_OF_EACH_KIND: list[Any] = [None, True, -1, 1.0, 70000, "x", [], [None], {"type": "q"}]
MOST_CHANGES = 4
OPTIONAL_FIELDS = 0.7

Path = tuple[str | int, ...]


class Generator:
    """Instances of the definitions of a schema; the same random numbers make the same instances."""

    def __init__(self, definitions: Mapping[str, Any], random: Random) -> None:
        self._definitions = definitions
        self._random = random

    def instance(self, name: str) -> Any:
        """An instance of a definition, valid but for what the schema forbids with `not`."""
        return self.make(self._definitions[name])

    def broken(self, value: Any) -> Any:
        """The same value with up to a few places changed, taken out or added."""
        root = {"root": value}
        for _ in range(self._random.randrange(MOST_CHANGES + 1)):
            self._break_one(root)
        return root["root"]

    def make(self, schema: Any) -> Any:
        """An instance of any schema that refers to these definitions."""
        if schema is True or not isinstance(schema, Mapping):
            return self._junk()
        parts = [self._definitions[schema["$ref"].rpartition("/")[2]]] if "$ref" in schema else []
        parts += schema.get("allOf", [])
        parts += [self._random.choice(schema[key]) for key in ("anyOf", "oneOf") if key in schema]
        values = [self.make(part) for part in parts]
        if "properties" in schema:
            values.append(self._properties(schema))
        if values:
            return _merged(values)
        return self._plain(schema)

    def _properties(self, schema: Mapping[str, Any]) -> dict[str, Any]:
        required = schema.get("required", ())
        return {
            key: self.make(part)
            for key, part in schema["properties"].items()
            if key in required or self._random.random() < OPTIONAL_FIELDS
        }

    def _plain(self, schema: Mapping[str, Any]) -> Any:
        if "const" in schema:
            return schema["const"]
        kinds = schema.get("type", "any")
        kind = self._random.choice(kinds) if isinstance(kinds, list) else kinds
        if kind == "array":
            return [self.make(schema.get("items", True)) for _ in range(self._random.randrange(3))]
        if kind == "object":
            if "additionalProperties" not in schema:
                return {}
            inner = schema["additionalProperties"]
            return {self._random.choice("abc"): self.make(inner) for _ in range(self._random.randrange(3))}
        return self._scalar(kind)

    def _scalar(self, kind: str) -> Any:
        match kind:
            case "string":
                return self._random.choice(STRINGS)
            case "integer":
                return self._random.choice([0, 1, 7, 65535, 2**31])
            case "number":
                return self._random.choice([0, 0.5, 3])
            case "boolean":
                return self._random.random() < 0.5
            case "null":
                return None
            case _:
                return self._junk()

    def _junk(self) -> Any:
        return deepcopy(self._random.choice(JUNK))

    def _break_one(self, root: dict[str, Any]) -> None:
        path = self._random.choice(list(_places(root)))
        parent = _at(root, path[:-1])
        key = path[-1]
        match self._random.randrange(4):
            case 0 if path != ("root",):
                del parent[key]
            case 1 if isinstance(parent[key], dict):
                parent[key]["unheardOf"] = self._junk()
            case 2 if isinstance(parent[key], list):
                parent[key].append(self._junk())
            case _:
                parent[key] = self._junk()


def broken_in_one_place(value: Any) -> Iterator[Any]:
    """Every value that differs in one place: something else there, or nothing."""
    for path in _places(value):
        for junk in ONE_OF_EACH_KIND:
            yield _with(value, path, junk)
        yield _without(value, path)


def _with(value: Any, path: Path, item: Any) -> Any:
    changed = deepcopy(value)
    _at(changed, path[:-1])[path[-1]] = deepcopy(item)
    return changed


def _without(value: Any, path: Path) -> Any:
    changed = deepcopy(value)
    del _at(changed, path[:-1])[path[-1]]
    return changed


def _merged(values: list[Any]) -> Any:
    objects = [value for value in values if isinstance(value, dict)]
    if len(objects) < len(values):
        return next(value for value in values if not isinstance(value, dict))
    return {key: value for each in objects for key, value in each.items()}


def _places(value: Any, path: Path = ()) -> Iterator[Path]:
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in items:
        yield (*path, key)
        yield from _places(item, (*path, key))


def _at(value: Any, path: Path) -> Any:
    for key in path:
        value = value[key]
    return value
