"""What every protocol object is made of: its form on the wire, and how much of a malformed one is forgiven.

An optional field is left out when it holds its default, so that neither nulls nor empty lists are written. `_meta` is
kept on every object, as the attribute `meta`.
"""

from collections.abc import Mapping
from typing import Annotated, Any, Final, TypeVar, dataclass_transform

import msgspec

T = TypeVar("T")

_DEFAULT_ON_ERROR: Final = msgspec.Meta(extra={"default_on_error": True})
_DEFAULT_ON_NULL: Final = msgspec.Meta(extra={"default_on_null": True})
_SKIP_INVALID_ITEMS: Final = msgspec.Meta(extra={"default_on_error": True, "skip_invalid_items": True})

Lenient = Annotated[T, _DEFAULT_ON_ERROR]
"""An optional field that counts as missing when its value is malformed."""

Items = Annotated[T, _SKIP_INVALID_ITEMS]
"""A list whose malformed items are skipped, and that counts as missing when it is no list."""

NullMeansEmpty = Annotated[T, _DEFAULT_ON_NULL]
"""A list or mapping that may be null for empty, but must be well-formed otherwise."""

RequestId = int | str | None

Unsigned = Annotated[int, msgspec.Meta(ge=0)]


def always_written() -> list[Any]:
    """The default of a list that the protocol requires: empty when missing, and written even when empty."""
    return []


@dataclass_transform(frozen_default=True, kw_only_default=True, field_specifiers=(msgspec.field,))
class WireStruct(msgspec.Struct, rename="camel", omit_defaults=True, kw_only=True, frozen=True):
    """A protocol object: camelCase keys on the wire, snake_case attributes here."""

    meta: Lenient[dict[str, Any] | None] = msgspec.field(name="_meta", default=None)


class Supported(WireStruct):
    """The marker object that announces a capability: present means supported, missing means not."""


SUPPORTED: Final = Supported()


class Choice:
    """The parent of objects that are told apart by more than one required key."""

    __slots__ = ()

    @classmethod
    def choose(cls, value: Mapping[str, Any]) -> "type[Choice] | None":
        """The class that describes a JSON object, or None when its `type` is one that nobody knows."""
        raise NotImplementedError


UNKNOWN: Final = ""
"""The tag and the key under which an unknown variant is handed to the decoder; the protocol has no empty names."""


class Unknown(WireStruct, tag=UNKNOWN):
    """A variant that this version does not know, kept as it came in `raw`; for reading only, never written."""

    raw: dict[str, Any] = msgspec.field(name=UNKNOWN)


class Conflict(ValueError):
    """Fields of one object contradict each other.

    Attributes:
        field: the key to blame, as it is spelt on the wire.
        problem: what is wrong with it, without its value.
    """

    def __init__(self, field: str, problem: str) -> None:
        super().__init__(f"{field} {problem}")
        self.field = field
        self.problem = problem
