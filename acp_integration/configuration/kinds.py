"""The types of settings fields: what a value is in Python, how its text is read, and how the documentation calls it."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, PlainSerializer, SecretStr, SerializationInfo

from acp_integration.configuration import addresses, quantities, values

MASK = "**********"


@dataclass(frozen=True, slots=True)
class Kind:
    """Stands among the annotations of a field and says what the field holds.

    Attributes:
        label: what the documentation calls it.
        table: whether the field holds entries under keys that the user chooses.
        secret: whether its value must never be shown.
    """

    label: str
    table: bool = False
    secret: bool = False


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


def _dumped(entries: Secrets, info: SerializationInfo) -> Any:
    return entries.masked() if info.mode == "json" else entries


def _table(value: object) -> object:
    if not isinstance(value, Mapping):
        raise values.Invalid("a JSON object")
    return value


Flag = Annotated[bool, BeforeValidator(values.boolean), Kind("true or false")]
Text = Annotated[str, BeforeValidator(values.text), Kind("text")]
Number = Annotated[int, BeforeValidator(values.positive_integer), Kind("integer above 0")]
Port = Annotated[int, BeforeValidator(values.port), Kind("port")]
Size = Annotated[int, BeforeValidator(quantities.size), Kind("size")]
Duration = Annotated[timedelta, BeforeValidator(quantities.duration), Kind("duration")]
PositiveDuration = Annotated[timedelta, BeforeValidator(quantities.positive_duration), Kind("duration above 0")]
Items = Annotated[tuple[str, ...], BeforeValidator(values.items), Kind("list")]
Names = Annotated[tuple[str, ...], BeforeValidator(values.names), Kind("list of names")]
Origins = Annotated[tuple[str, ...], BeforeValidator(addresses.origins), Kind("list of origins")]
Hosts = Annotated[tuple[str, ...], BeforeValidator(addresses.hosts), Kind("list of hosts")]
Directories = Annotated[tuple[str, ...], BeforeValidator(addresses.directories), Kind("list of absolute paths")]
EndpointPath = Annotated[str, BeforeValidator(addresses.endpoint_path), Kind("path")]
WebSocketUri = Annotated[str, BeforeValidator(addresses.websocket_uri), Kind("ws or wss URI")]
HttpUri = Annotated[str, BeforeValidator(addresses.http_uri), Kind("http or https URI")]
SessionStore = Annotated[
    str, BeforeValidator(values.session_store), Kind("`none`, `memory:`, `sqlite:///path` or `django`")
]
ExecutorName = Annotated[str, BeforeValidator(values.executor_name), Kind("`none` or `module:name`")]
TransportType = Annotated[
    Literal["stdio", "websocket", "http"],
    BeforeValidator(values.transport_type),
    Kind("`stdio`, `websocket` or `http`"),
]
Secret = Annotated[SecretStr, Kind("secret text", secret=True)]
SecretTable = Annotated[
    Mapping[str, Annotated[str, BeforeValidator(values.entry_text)]],
    BeforeValidator(_table),
    AfterValidator(Secrets),
    PlainSerializer(_dumped),
    Kind("secret text by name", table=True, secret=True),
]
