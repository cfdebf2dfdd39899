"""How the text of a value is read. Every reader takes text or the value itself and raises `Invalid` for all else."""

import json
import os
import re
from collections.abc import Iterable, Mapping
from datetime import timedelta
from typing import Any, Final
from urllib.parse import urlsplit

DURATION: Final = "a duration such as 30s or PT30S"
SIZE: Final = "a size such as 16MB"
LARGEST_SIZE: Final = 2**63 - 1

_INTEGER = re.compile(r"[+-]?[0-9]{1,18}")
_AMOUNT = re.compile(r"([0-9]+) *([A-Za-z]*)")
_ISO_DURATION = re.compile(
    r"P(?:(?P<days>[0-9]+)D)?"
    r"(?:T(?=[0-9])(?:(?P<hours>[0-9]+)H)?(?:(?P<minutes>[0-9]+)M)?(?:(?P<seconds>[0-9]+(?:\.[0-9]{1,9})?)S)?)?",
    re.IGNORECASE,
)
_UNITS: Final = {"": "milliseconds", "ms": "milliseconds", "s": "seconds", "m": "minutes", "h": "hours", "d": "days"}
_SIZES: Final = {"": 0, "b": 0, "k": 10, "kb": 10, "m": 20, "mb": 20, "g": 30, "gb": 30}
_NOT_IN_URI = re.compile(r"[\s<>\"{}|\\^`\x00-\x1f\x7f]|%(?![0-9A-Fa-f]{2})|^(?![A-Za-z][A-Za-z0-9+.-]*:)[^/?#]*:")
_ORIGIN = re.compile(r"\*|[a-z][a-z0-9+.-]*://(?:\[[0-9a-f:.]+\]|[^\s/?#@:\[\]]+)(?::[0-9]+)?")
_HOST = re.compile(r"(?:\[[0-9a-f:.]+\]|[^\s/?#@:\[\]]+)(?::[0-9]+)?")


class Invalid(ValueError):
    """A value that cannot be read.

    Attributes:
        what: what the value should have been, for example ``an integer``.
        culprit: the part of the value at fault, or None for all of it.
    """

    def __init__(self, what: str, culprit: str | None = None) -> None:
        super().__init__(f"{'value' if culprit is None else culprit} is not {what}")
        self.what = what
        self.culprit = culprit


def text(value: Any) -> str:
    """Text or a path, trimmed."""
    if isinstance(value, str | os.PathLike):
        trimmed = str(value).strip()
        if trimmed:
            return trimmed
    raise Invalid("text")


def entry_text(value: Any) -> str:
    """The value of an environment variable or header: text kept as it is, or a number."""
    if isinstance(value, str):
        return value
    if isinstance(value, int | float) and not isinstance(value, bool):
        return str(value)
    raise Invalid("text")


def boolean(value: Any) -> bool:
    """True or false, in any case."""
    if isinstance(value, bool):
        return value
    spelled = value.strip().lower() if isinstance(value, str) else ""
    if spelled not in {"true", "false"}:
        raise Invalid("true or false")
    return spelled == "true"


def integer(value: Any) -> int:
    """A plain decimal integer."""
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    if isinstance(value, str) and _INTEGER.fullmatch(value.strip()):
        return int(value)
    raise Invalid("an integer")


def positive_integer(value: Any) -> int:
    """An integer above zero."""
    number = integer(value)
    if number < 1:
        raise Invalid("a positive integer")
    return number


def port(value: Any) -> int:
    """A TCP port; 0 is any free one."""
    number = integer(value)
    if not 0 <= number <= 65535:
        raise Invalid("a port from 0 to 65535")
    return number


def duration(value: Any) -> timedelta:
    """ISO-8601, or digits with the unit ms, s, m, h or d; a bare number is milliseconds."""
    try:
        length = _duration(value)
    except OverflowError:
        raise Invalid(DURATION) from None
    if length is None or length < timedelta(0):
        raise Invalid(DURATION)
    return length


def positive_duration(value: Any) -> timedelta:
    """A duration above zero."""
    length = duration(value)
    if not length:
        raise Invalid("a duration above zero")
    return length


def _duration(value: Any) -> timedelta | None:
    if isinstance(value, timedelta):
        return value
    if isinstance(value, int) and not isinstance(value, bool):
        return timedelta(milliseconds=value)
    if not isinstance(value, str):
        return None
    trimmed = value.strip()
    if trimmed[:1] in {"P", "p"}:
        return _iso_duration(trimmed)
    match = _AMOUNT.fullmatch(trimmed)
    unit = _UNITS.get(match[2].lower()) if match else None
    # More digits than any duration has would only cost time to convert.
    if match is None or unit is None or len(match[1]) > 30:
        return None
    return timedelta(**{unit: int(match[1])})


def _iso_duration(spelled: str) -> timedelta | None:
    match = _ISO_DURATION.fullmatch(spelled)
    parts = {unit: amount for unit, amount in match.groupdict().items() if amount} if match else {}
    if not parts or any(len(amount) > 30 for amount in parts.values()):
        return None
    whole, _, fraction = parts.pop("seconds", "0").partition(".")
    microseconds = int(fraction.ljust(6, "0")[:6]) if fraction else 0
    units = {unit: int(amount) for unit, amount in parts.items()}
    return timedelta(seconds=int(whole), microseconds=microseconds, **units)


def size(value: Any) -> int:
    """A number of bytes above zero, or digits with the unit B, K, KB, M, MB, G or GB, powers of 1024."""
    amount = _size(value)
    if amount is None or not 0 < amount <= LARGEST_SIZE:
        raise Invalid(SIZE)
    return amount


def _size(value: Any) -> int | None:
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    match = _AMOUNT.fullmatch(value.strip()) if isinstance(value, str) else None
    power = _SIZES.get(match[2].lower()) if match else None
    if match is None or power is None or len(match[1]) > 30:
        return None
    return int(match[1]) << power


def items(value: Any) -> tuple[str, ...]:
    """A list: a sequence of text, a JSON array of text, or text separated by commas."""
    if isinstance(value, str):
        value = _json_array(value) if value.lstrip().startswith("[") else _comma_separated(value)
    # A mapping or a plain value in place of a list is a mistake, also where it could be iterated.
    if isinstance(value, Mapping) or not isinstance(value, Iterable):
        raise Invalid('a list such as a,b or ["a", "b"]')
    return tuple(_item(element) for element in value)


def _item(element: Any) -> str:
    if not isinstance(element, str | os.PathLike):
        raise Invalid("text", str(element))
    return str(element)


def _comma_separated(value: str) -> list[str]:
    return [item for item in (part.strip() for part in value.split(",")) if item]


def _json_array(value: str) -> list[Any]:
    try:
        return list(json.loads(value))
    except (ValueError, TypeError, RecursionError):
        raise Invalid('a list such as a,b or ["a", "b"]') from None


def names(value: Any) -> tuple[str, ...]:
    """A list of names, each trimmed."""
    return tuple(text(item) for item in items(value))


def origins(value: Any) -> tuple[str, ...]:
    """A list of browser origins in lower case without a trailing slash; ``*`` is any."""
    return _checked(items(value), _ORIGIN, "an origin such as https://example.com")


def hosts(value: Any) -> tuple[str, ...]:
    """A list of host names in lower case, each with or without a port."""
    return _checked(items(value), _HOST, "a host such as example.com")


def _checked(found: tuple[str, ...], pattern: re.Pattern[str], what: str) -> tuple[str, ...]:
    trimmed = tuple(item.strip().lower().removesuffix("/") for item in found)
    for item in trimmed:
        if not pattern.fullmatch(item):
            raise Invalid(what, item)
    return trimmed


def directories(value: Any) -> tuple[str, ...]:
    """A list of absolute paths."""
    found = items(value)
    for item in found:
        if not os.path.isabs(item):  # noqa: PTH117
            raise Invalid("an absolute path", item)
    return found


def endpoint_path(value: Any) -> str:
    """The path of an URL, beginning with a slash."""
    path = text(value)
    if not path.startswith("/") or re.search(r"[\s?#]", path):
        raise Invalid("a path such as /acp")
    return path


def websocket_uri(value: Any) -> str:
    """A ws:// or wss:// URI."""
    return _uri(value, "ws", "wss")


def http_uri(value: Any) -> str:
    """An http:// or https:// URI."""
    return _uri(value, "http", "https")


def _uri(value: Any, *schemes: str) -> str:
    spelled = value.strip() if isinstance(value, str) else ""
    try:
        parts = urlsplit(spelled)
        usable = bool(parts.hostname) and (parts.port or 1) > 0
    except ValueError:
        raise Invalid("a URI") from None
    if not spelled or _NOT_IN_URI.search(spelled):
        raise Invalid("a URI")
    if parts.scheme.lower() not in schemes or not usable:
        raise Invalid(f"a {schemes[0]}:// or {schemes[1]}:// URI")
    return spelled


def transport_type(value: Any) -> str:
    """The name of a transport, in any case."""
    spelled = value.strip().lower() if isinstance(value, str) else ""
    if spelled not in {"stdio", "websocket", "http"}:
        raise Invalid("stdio, websocket or http")
    return spelled


def session_store(value: Any) -> str:
    """Where sessions are kept."""
    spelled = text(value)
    if spelled in {"none", "memory:", "django"} or re.fullmatch(r"sqlite:///.+", spelled):
        return spelled
    raise Invalid("none, memory:, sqlite:///path or django")


def executor_name(value: Any) -> str:
    """``none``, or where an executor stands."""
    spelled = text(value)
    if spelled == "none" or re.fullmatch(r"[\w.]+:[\w.]+", spelled):
        return spelled
    raise Invalid("none or an executor such as module:name")
