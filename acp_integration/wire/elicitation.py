"""Questions an agent puts to the user: a form to fill in, or a page to visit."""

from collections.abc import Mapping
from typing import Any, Final, Literal

import msgspec

from acp_integration.wire.structure import (
    Choice,
    Conflict,
    Items,
    Lenient,
    RequestId,
    Unknown,
    Unsigned,
    WireStruct,
)

StringFormat = Literal["email", "uri", "date", "date-time"]


def _object() -> Literal["object"]:
    return "object"


class EnumOption(WireStruct):
    """A value with a title to show for it."""

    const: str
    title: str
    description: Lenient[str | None] = None


class StringPropertySchema(WireStruct, tag_field="type", tag="string"):
    """A text field, or a selection when `enum` or `one_of` is given."""

    title: Lenient[str | None] = None
    description: Lenient[str | None] = None
    min_length: Unsigned | None = None
    max_length: Unsigned | None = None
    pattern: str | None = None
    format: StringFormat | None = None
    default: Lenient[str | None] = None
    enum: list[str] | None = None
    one_of: list[EnumOption] | None = None


class NumberPropertySchema(WireStruct, tag_field="type", tag="number"):
    """A field for a number."""

    title: Lenient[str | None] = None
    description: Lenient[str | None] = None
    minimum: float | None = None
    maximum: float | None = None
    default: Lenient[float | None] = None


class IntegerPropertySchema(WireStruct, tag_field="type", tag="integer"):
    """A field for a whole number."""

    title: Lenient[str | None] = None
    description: Lenient[str | None] = None
    minimum: int | None = None
    maximum: int | None = None
    default: Lenient[int | None] = None


class BooleanPropertySchema(WireStruct, tag_field="type", tag="boolean"):
    """A check box."""

    title: Lenient[str | None] = None
    description: Lenient[str | None] = None
    default: Lenient[bool | None] = None


class MultiSelectItems(Choice):
    """The values of a multiple selection: plain strings, or values with titles."""

    __slots__ = ()

    @classmethod
    def choose(cls, value: Mapping[str, Any]) -> type[Choice] | None:
        """Titled wherever there is `anyOf`; a type that is not "string" is one this version does not know."""
        if "anyOf" in value:
            return TitledMultiSelectItems
        return OtherMultiSelectItems if value.get("type", "string") != "string" else StringMultiSelectItems


class StringMultiSelectItems(WireStruct, MultiSelectItems):
    """Plain strings to select from."""

    type: Literal["string"]
    enum: list[str]


class TitledMultiSelectItems(WireStruct, MultiSelectItems):
    """Values with titles to select from."""

    any_of: list[EnumOption]


class OtherMultiSelectItems(WireStruct, MultiSelectItems):
    """Items of a type that this version does not know."""

    type: str


class MultiSelectPropertySchema(WireStruct, tag_field="type", tag="array"):
    """A selection of several values."""

    items: MultiSelectItems
    title: Lenient[str | None] = None
    description: Lenient[str | None] = None
    min_items: Unsigned | None = None
    max_items: Unsigned | None = None
    default: Items[list[str] | None] = None


class UnknownPropertySchema(Unknown, tag_field="type"):
    """A kind of field that this version does not know."""


ElicitationPropertySchema = (
    StringPropertySchema
    | NumberPropertySchema
    | IntegerPropertySchema
    | BooleanPropertySchema
    | MultiSelectPropertySchema
    | UnknownPropertySchema
)


class ElicitationSchema(WireStruct):
    """The fields of a form, as a flat JSON schema."""

    type: Lenient[Literal["object"]] = msgspec.field(default_factory=_object)
    properties: dict[str, ElicitationPropertySchema] = msgspec.field(default_factory=dict)
    required: list[str] | None = None
    title: Lenient[str | None] = None
    description: Lenient[str | None] = None


class _Elicitation(WireStruct):
    message: str
    session_id: str | None = None
    tool_call_id: Lenient[str | None] = None
    request_id: RequestId | msgspec.UnsetType = msgspec.UNSET

    def __post_init__(self) -> None:
        if self.session_id is None and self.request_id is msgspec.UNSET:
            raise Conflict("sessionId", "is missing")


class CreateFormElicitation(_Elicitation, kw_only=True, tag_field="mode", tag="form"):
    """Asks the user to fill in a form, for a session or for a request of the client."""

    requested_schema: ElicitationSchema


class CreateUrlElicitation(_Elicitation, kw_only=True, tag_field="mode", tag="url"):
    """Asks the user to visit a page, for a session or for a request of the client."""

    elicitation_id: str
    url: str


CreateElicitationRequest = CreateFormElicitation | CreateUrlElicitation

_ANSWER: Final = dict[str, str | int | float | bool | list[str]]


class CreateElicitationResponse(WireStruct):
    """What the user did: "accept", "decline", "cancel" or something newer; `content` is the form filled in."""

    action: str
    content: Any = None

    def __post_init__(self) -> None:
        if self.action != "accept" or self.content is None:
            return
        try:
            msgspec.convert(self.content, _ANSWER)
        except msgspec.ValidationError:
            raise Conflict("content", "must be an object of strings, numbers, booleans and lists of strings") from None


class CompleteElicitationNotification(WireStruct):
    """The page of an elicitation has been dealt with."""

    elicitation_id: str
