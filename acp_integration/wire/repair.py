"""The slow path of decoding: forgives what the protocol says to forgive, and names the place of what it does not.

Works on plain JSON values. Cleans an object so that the strict decoder takes it, or raises `Malformed`.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any, Final, cast

import msgspec
from msgspec import inspect

from acp_integration.wire.structure import UNKNOWN, Choice, Conflict

_LONGEST_KEY: Final = 64

_KINDS: Final[Mapping[type[inspect.Type], tuple[type | tuple[type, ...], str]]] = {
    inspect.StrType: (str, "a string"),
    inspect.LiteralType: (str, "a string"),
    inspect.IntType: (int, "an integer"),
    inspect.FloatType: ((int, float), "a number"),
    inspect.BoolType: (bool, "true or false"),
    inspect.NoneType: (type(None), "null"),
    inspect.ListType: (list, "a list"),
    inspect.DictType: (dict, "an object"),
    inspect.StructType: (dict, "an object"),
    inspect.CustomType: (dict, "an object"),
}
"""For each kind of type: the Python types of a JSON value that can be one, and its name in error texts."""


class Malformed(ValueError):
    """A JSON value has not the form it must have.

    Attributes:
        path: where it stands, for example ``params.prompt[0].text``.
        problem: what is wrong with it; never holds the value itself.
    """

    def __init__(self, path: str, problem: str) -> None:
        super().__init__(f"{path} {problem}")
        self.path = path
        self.problem = problem


@cache
def describe(expected: Any) -> inspect.Type:
    """What msgspec knows about a type; worked out once."""
    return inspect.type_info(expected)


def choose(expected: type[Choice], value: Any) -> Any:
    """Decode a JSON object into one of the classes of a choice: the decoders' hook for types they do not know."""
    chosen = expected.choose(value) if isinstance(value, dict) else None
    if chosen is None:
        raise ValueError("not one of the choices")
    return msgspec.convert(value, chosen, dec_hook=choose)


def repair(value: Any, expected: inspect.Type, path: str) -> Any:
    """Clean a value so that it decodes as the expected type; raises Malformed."""
    return _REPAIRS[type(expected)](value, expected, path)


def _anything(value: Any, _expected: inspect.Type, _path: str) -> Any:
    return value


def _annotated(value: Any, expected: inspect.Metadata, path: str) -> Any:
    if isinstance(value, list) and (expected.extra or {}).get("skip_invalid_items"):
        return _valid_items(value, _list_type(expected.type), path)
    return repair(value, expected.type, path)


def _list(value: Any, expected: inspect.ListType, path: str) -> list[Any]:
    _check_kind(value, expected, path)
    return [repair(item, expected.item_type, f"{path}[{index}]") for index, item in enumerate(value)]


def _mapping(value: Any, expected: inspect.DictType, path: str) -> dict[str, Any]:
    _check_kind(value, expected, path)
    return {key: repair(item, expected.value_type, _inside(path, key)) for key, item in value.items()}


def _object(value: Any, expected: inspect.StructType, path: str) -> dict[str, Any]:
    _check_kind(value, expected, path)
    fields: dict[str, Any] = {}
    for field in expected.fields:
        key = field.encode_name
        if key in value:
            fields.update(_field(value[key], field, f"{path}.{key}"))
        elif field.required:
            raise Malformed(f"{path}.{key}", "is missing")
    if expected.tag_field is not None:
        fields[expected.tag_field] = expected.tag
    if hasattr(expected.cls, "__post_init__"):
        _check_together(fields, expected.cls, path)
    return fields


def _field(value: Any, field: inspect.Field, path: str) -> dict[str, Any]:
    extra = field.type.extra or {} if isinstance(field.type, inspect.Metadata) else {}
    if value is None and extra.get("default_on_null"):
        return {}
    try:
        return {field.encode_name: repair(value, field.type, path)}
    except Malformed:
        if extra.get("default_on_error"):
            return {}
        raise


def _check_together(fields: dict[str, Any], expected: type, path: str) -> None:
    try:
        msgspec.convert(fields, expected, dec_hook=choose)
    except msgspec.ValidationError as error:
        if isinstance(error.__cause__, Conflict):
            raise Malformed(f"{path}.{error.__cause__.field}", error.__cause__.problem) from None
        raise


def _valid_items(values: Sequence[Any], expected: inspect.ListType, path: str) -> list[Any]:
    items = []
    for value in values:
        try:
            items.append(repair(value, expected.item_type, path))
        except Malformed:
            continue
    return items


def _list_type(expected: inspect.Type) -> inspect.ListType:
    members = expected.types if isinstance(expected, inspect.UnionType) else (expected,)
    return next(member for member in members if isinstance(member, inspect.ListType))


def _chosen(value: Any, expected: inspect.CustomType, path: str) -> Any:
    _check_kind(value, expected, path)
    chosen: Any = cast("type[Choice]", expected.cls).choose(value)
    if chosen is None:
        raise Malformed(f"{path}.type", "names nothing known here")
    return repair(value, describe(chosen), path)


def _member(value: Any, expected: inspect.UnionType, path: str) -> Any:
    structs = [member for member in expected.types if isinstance(member, inspect.StructType)]
    if structs and isinstance(value, dict):
        return _variant(value, structs, path)
    for member in expected.types:
        if _has_kind(value, member):
            return repair(value, member, path)
    raise Malformed(path, "must be " + " or ".join(dict.fromkeys(_name(member) for member in expected.types)))


def _variant(value: dict[str, Any], structs: Sequence[inspect.StructType], path: str) -> dict[str, Any]:
    tag_field = structs[0].tag_field
    if tag_field is None:
        return _object(value, structs[0], path)
    if tag_field not in value:
        raise Malformed(f"{path}.{tag_field}", "is missing")
    tag = value[tag_field]
    variants = {struct.tag: struct for struct in structs}
    if not isinstance(tag, str):
        raise Malformed(f"{path}.{tag_field}", "must be a string")
    if tag in variants and tag != UNKNOWN:
        return _object(value, variants[tag], path)
    if UNKNOWN in variants:
        return {tag_field: UNKNOWN, UNKNOWN: value}
    raise Malformed(f"{path}.{tag_field}", "must be one of " + ", ".join(str(name) for name in variants))


def _scalar(value: Any, expected: inspect.Type, path: str) -> Any:
    _check_kind(value, expected, path)
    return value


def _choice(value: Any, expected: inspect.LiteralType, path: str) -> Any:
    if not isinstance(value, str) or value not in expected.values:
        raise Malformed(path, "must be one of " + ", ".join(str(choice) for choice in expected.values))
    return value


def _string(value: Any, expected: inspect.StrType, path: str) -> Any:
    _check_kind(value, expected, path)
    if len(value) < (expected.min_length or 0):
        raise Malformed(path, "must not be empty")
    return value


def _integer(value: Any, expected: inspect.IntType, path: str) -> Any:
    _check_kind(value, expected, path)
    if expected.ge is not None and value < expected.ge:
        raise Malformed(path, f"must be at least {expected.ge}")
    if expected.le is not None and value > expected.le:
        raise Malformed(path, f"must be at most {expected.le}")
    return value


def _check_kind(value: Any, expected: inspect.Type, path: str) -> None:
    if not _has_kind(value, expected):
        raise Malformed(path, f"must be {_name(expected)}")


def _has_kind(value: Any, expected: inspect.Type) -> bool:
    if isinstance(expected, inspect.Metadata):
        return _has_kind(value, expected.type)
    if isinstance(value, bool):
        return isinstance(expected, inspect.BoolType)
    return isinstance(value, _KINDS[type(expected)][0])


def _name(expected: inspect.Type) -> str:
    return _name(expected.type) if isinstance(expected, inspect.Metadata) else _KINDS[type(expected)][1]


def _inside(path: str, key: str) -> str:
    return f"{path}.{key}" if len(key) <= _LONGEST_KEY and key.isprintable() else f"{path}[...]"


_REPAIRS: Final[Mapping[type[inspect.Type], Callable[[Any, Any, str], Any]]] = {
    inspect.AnyType: _anything,
    inspect.Metadata: _annotated,
    inspect.UnionType: _member,
    inspect.StructType: _object,
    inspect.CustomType: _chosen,
    inspect.ListType: _list,
    inspect.DictType: _mapping,
    inspect.LiteralType: _choice,
    inspect.StrType: _string,
    inspect.IntType: _integer,
    inspect.FloatType: _scalar,
    inspect.BoolType: _scalar,
    inspect.NoneType: _scalar,
}
