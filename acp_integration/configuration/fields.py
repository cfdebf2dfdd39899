"""The fields of settings classes, and the base of those classes: everything given to one is read when it is made."""

from collections.abc import Mapping
from functools import cache
from importlib import import_module
from types import NoneType
from typing import Any, Literal, Self, get_args

import msgspec

from acp_integration.configuration.kinds import MASK, Kind, Secrets
from acp_integration.configuration.values import Invalid, InvalidEntries


class Section(msgspec.Struct, frozen=True, kw_only=True):
    """A group of settings; it cannot be changed, and two with the same values are equal.

    Among the annotations of a field stand its `Kind` and, as text, what it means.

    Raises:
        ValueError: naming each field whose value cannot be read; an `InvalidEntries`.
        TypeError: for a name that is no field.
    """

    def __post_init__(self) -> None:
        """Read what was given."""
        problems: dict[tuple[str, ...], Invalid] = {}
        for field in fields_of(type(self)):
            given = getattr(self, field.name)
            try:
                value = field.read(given)
            except Invalid as error:
                problems[(field.name,)] = error
            except InvalidEntries as error:
                problems |= {(field.name, *path): problem for path, problem in error.problems.items()}
            else:
                if value is not given:
                    msgspec.structs.force_setattr(self, field.name, value)
        if problems:
            raise InvalidEntries(problems)

    def model_dump(self, *, mode: Literal["python", "json"] = "python") -> dict[str, Any]:
        """The fields as a mapping, under the name pydantic gives it; in the mode `json` as JSON with secrets masked."""
        if mode == "json":
            plain: dict[str, Any] = msgspec.to_builtins(self, enc_hook=_masked)
            return plain
        values = msgspec.structs.asdict(self)
        return {name: value.model_dump() if isinstance(value, Section) else value for name, value in values.items()}

    def model_dump_json(self) -> str:
        """The fields as JSON, with secrets masked."""
        return msgspec.json.encode(self, enc_hook=_masked).decode()

    @classmethod
    def __get_pydantic_core_schema__(cls, _source: Any, _handler: Any) -> Any:
        """Lets settings be a field of somebody's pydantic model, which is all that needs pydantic here."""
        schema = import_module("pydantic_core.core_schema")
        dump = schema.plain_serializer_function_ser_schema(_dumped, info_arg=True)
        return schema.no_info_plain_validator_function(cls.of, serialization=dump)

    @classmethod
    def of(cls, given: Any) -> Self:
        """The settings of a mapping by the names of fields, or the settings themselves; raises as making them does."""
        if isinstance(given, cls):
            return given
        if not isinstance(given, Mapping):
            raise Invalid("a table of keys")
        unknown = [str(name) for name in given if name not in cls.__struct_fields__]
        if unknown:
            raise InvalidEntries({(name,): Invalid(f"a field of {cls.__name__}", name) for name in unknown})
        return cls(**given)


class Field(msgspec.Struct, frozen=True):
    """One field of a settings class.

    Attributes:
        name: its name.
        kind: what it holds; None for a group of settings.
        section: the class of the group; None for a value.
        optional: whether it may be None, which is unset.
        meaning: one line of documentation.
        default: its value when nothing is given.
    """

    name: str
    kind: Kind | None
    section: type[Section] | None
    optional: bool
    meaning: str
    default: Any

    def read(self, given: Any) -> Any:
        """The value of what was given; raises `Invalid` or `InvalidEntries`."""
        if given is None and self.optional:
            return None
        if self.section is None:
            assert self.kind is not None
            return self.kind.read(given)
        return self.section.of(given)


@cache
def fields_of(section: type[Section]) -> tuple[Field, ...]:
    """The fields of a settings class, in the order of the class."""
    return tuple(_field(info) for info in msgspec.structs.fields(section))


def _field(info: msgspec.structs.FieldInfo) -> Field:
    if isinstance(info.type, type):
        return Field(info.name, None, info.type, optional=False, meaning="", default=info.default)
    held = get_args(info.type.__origin__)
    # What an optional field holds is said at the member of its union, not at the field.
    marks = (*info.type.__metadata__, *(mark for each in held for mark in getattr(each, "__metadata__", ())))
    kind = next(mark for mark in marks if isinstance(mark, Kind))
    meaning = next(mark for mark in marks if isinstance(mark, str))
    return Field(info.name, kind, None, optional=NoneType in held, meaning=meaning, default=info.default)


def _masked(value: Any) -> Any:
    return value.masked() if isinstance(value, Secrets) else MASK


def _dumped(section: Section, info: Any) -> dict[str, Any]:
    return section.model_dump(mode=info.mode)
