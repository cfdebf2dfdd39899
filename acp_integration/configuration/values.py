"""How the text of a value is read. Every reader takes text or the value itself and raises `Invalid` for all else."""

import json
import os
import re
from collections.abc import Iterable, Mapping
from typing import Any, Final

_INTEGER = re.compile(r"[+-]?[0-9]{1,18}")
_LIST: Final = 'a list such as a,b or ["a", "b"]'


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


class InvalidEntries(ValueError):
    """Several values that cannot be read.

    Attributes:
        problems: what is wrong with each, by the names of fields and entries that lead to it.
    """

    def __init__(self, problems: Mapping[tuple[str, ...], Invalid]) -> None:
        super().__init__("; ".join(f"{'.'.join(path)}: {problem}" for path, problem in problems.items()))
        self.problems = problems


def text(value: Any) -> str:
    """Text or a path, trimmed."""
    if isinstance(value, str | os.PathLike):
        trimmed = str(value).strip()
        if trimmed:
            return encodable(trimmed)
    raise Invalid("text")


def encodable(value: str) -> str:
    """Text as it is, unless bytes that are no UTF-8 stand in it, as a variable or a file name may hold them."""
    try:
        value.encode()
    except UnicodeEncodeError:
        raise Invalid("text") from None
    return value


def entry_text(value: Any) -> str:
    """The value of an environment variable or header: text kept as it is, or a number."""
    if isinstance(value, str):
        return encodable(value)
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


def items(value: Any) -> tuple[str, ...]:
    """A list: a sequence of text, a JSON array of text, or text separated by commas."""
    if isinstance(value, str):
        value = _json_array(value) if value.lstrip().startswith("[") else _comma_separated(value)
    # A mapping or a plain value in place of a list is a mistake, also where it could be iterated.
    if isinstance(value, Mapping) or not isinstance(value, Iterable):
        raise Invalid(_LIST)
    return tuple(_item(element) for element in value)


def _item(element: Any) -> str:
    if not isinstance(element, str | os.PathLike):
        raise Invalid("text", str(element))
    return encodable(str(element))


def _comma_separated(value: str) -> list[str]:
    return [item for item in (part.strip() for part in value.split(",")) if item]


def _json_array(value: str) -> list[Any]:
    try:
        return list(json.loads(value))
    except (ValueError, TypeError, RecursionError):
        raise Invalid(_LIST) from None


def names(value: Any) -> tuple[str, ...]:
    """A list of names, each trimmed."""
    return tuple(text(item) for item in items(value))


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
