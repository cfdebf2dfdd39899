"""How durations and sizes are read."""

import re
from datetime import timedelta
from typing import Any, Final

from acp_integration.configuration.values import Invalid

DURATION: Final = "a duration such as 30s or PT30S"
SIZE: Final = "a size such as 16MB"
LARGEST_SIZE: Final = 2**63 - 1

# More digits than any duration or size has would only cost time to convert.
_AMOUNT = re.compile(r"([0-9]{1,30}) *([A-Za-z]*)")
_ISO_DURATION = re.compile(
    r"P(?:(?P<days>[0-9]{1,30})D)?"
    r"(?:T(?=[0-9])(?:(?P<hours>[0-9]{1,30})H)?(?:(?P<minutes>[0-9]{1,30})M)?"
    r"(?:(?P<seconds>[0-9]{1,30}(?:\.[0-9]{1,9})?)S)?)?",
    re.IGNORECASE,
)
_UNITS: Final = {"": "milliseconds", "ms": "milliseconds", "s": "seconds", "m": "minutes", "h": "hours", "d": "days"}
_SIZES: Final = {"": 0, "b": 0, "k": 10, "kb": 10, "m": 20, "mb": 20, "g": 30, "gb": 30}


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
    if match is None or unit is None:
        return None
    return timedelta(**{unit: int(match[1])})


def _iso_duration(spelled: str) -> timedelta | None:
    match = _ISO_DURATION.fullmatch(spelled)
    parts = {unit: amount for unit, amount in match.groupdict().items() if amount} if match else {}
    if not parts:
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
    if match is None or power is None:
        return None
    return int(match[1]) << power
