"""The types of settings fields: what a value is in Python, how its text is read, and how the documentation calls it."""

from collections.abc import Callable, Iterator, Mapping
from datetime import timedelta
from typing import Annotated, Any, Literal

import msgspec

from acp_integration.configuration import addresses, quantities, values

MASK = "**********"


class Kind(msgspec.Struct, frozen=True):
    """Stands among the annotations of a field and says what the field holds.

    Attributes:
        label: what the documentation calls it.
        read: makes the value of what somebody wrote; raises `Invalid`, or `InvalidEntries`.
        table: whether the field holds entries under keys that the user chooses.
        secret: whether its value must never be shown.
    """

    label: str
    read: Callable[[Any], Any]
    table: bool = False
    secret: bool = False


class SecretText:
    """Text that is shown nowhere by accident."""

    __slots__ = ("_text",)

    def __init__(self, text: str) -> None:
        self._text = text

    def get_secret_value(self) -> str:
        """The text itself."""
        return self._text

    def __eq__(self, other: object) -> bool:
        return isinstance(other, SecretText) and other._text == self._text

    def __hash__(self) -> int:
        return hash(self._text)

    def __repr__(self) -> str:
        return MASK


class Secrets(Mapping[str, str]):
    """An immutable mapping whose values are shown nowhere by accident."""

    __slots__ = ("_entries",)

    def __init__(self, entries: Mapping[str, str] | None = None) -> None:
        self._entries = dict(entries or {})

    def __getitem__(self, name: str) -> str:
        return self._entries[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._entries)

    def __len__(self) -> int:
        return len(self._entries)

    def __hash__(self) -> int:
        return hash(frozenset(self._entries.items()))

    def __repr__(self) -> str:
        return repr(self.masked())

    def masked(self) -> dict[str, str]:
        """The same names, each with a mask in place of its value."""
        return dict.fromkeys(self._entries, MASK)


def _secret(value: Any) -> SecretText:
    held = value.get_secret_value() if hasattr(value, "get_secret_value") else value
    if not isinstance(held, str):
        raise values.Invalid("text")
    return SecretText(values.encodable(held))


def _table(value: Any) -> Secrets:
    if isinstance(value, Secrets):
        return value
    if not isinstance(value, Mapping):
        raise values.Invalid("a JSON object")
    read: dict[str, str] = {}
    wrong: dict[tuple[str, ...], values.Invalid] = {}
    for name, written in value.items():
        try:
            read[str(name)] = values.entry_text(written)
        except values.Invalid as error:
            wrong[(str(name),)] = error
    if wrong:
        raise values.InvalidEntries(wrong)
    return Secrets(read)


Flag = Annotated[bool, Kind("true or false", values.boolean)]
Text = Annotated[str, Kind("text", values.text)]
Number = Annotated[int, Kind("integer above 0", values.positive_integer)]
Port = Annotated[int, Kind("port", values.port)]
Size = Annotated[int, Kind("size", quantities.size)]
Duration = Annotated[timedelta, Kind("duration", quantities.duration)]
PositiveDuration = Annotated[timedelta, Kind("duration above 0", quantities.positive_duration)]
Items = Annotated[tuple[str, ...], Kind("list", values.items)]
Names = Annotated[tuple[str, ...], Kind("list of names", values.names)]
Origins = Annotated[tuple[str, ...], Kind("list of origins", addresses.origins)]
Hosts = Annotated[tuple[str, ...], Kind("list of hosts", addresses.hosts)]
Directories = Annotated[tuple[str, ...], Kind("list of absolute paths", addresses.directories)]
EndpointPath = Annotated[str, Kind("path", addresses.endpoint_path)]
WebSocketUri = Annotated[str, Kind("ws or wss URI", addresses.websocket_uri)]
HttpUri = Annotated[str, Kind("http or https URI", addresses.http_uri)]
SessionStore = Annotated[str, Kind("`none`, `memory:`, `sqlite:///path` or `django`", values.session_store)]
ExecutorName = Annotated[str, Kind("`none` or `module:name`", values.executor_name)]
TransportType = Annotated[
    Literal["stdio", "websocket", "http"],
    Kind("`stdio`, `websocket` or `http`", values.transport_type),
]
Secret = Annotated[SecretText, Kind("secret text", _secret, secret=True)]
SecretTable = Annotated[Mapping[str, str], Kind("secret text by name", _table, table=True, secret=True)]
