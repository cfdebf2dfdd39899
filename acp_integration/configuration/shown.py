"""How a value is shown to people: as they would write it, never with a password in it."""

import re
from collections.abc import Iterable, Mapping
from datetime import timedelta
from typing import Any, Final

from acp_integration.configuration.kinds import MASK, Secrets, SecretText

_USER_INFO = re.compile(r"(?<=://)[^/?#\s]*@")
_STEPS: Final = ((86400, "d"), (3600, "h"), (60, "m"), (1, "s"))
_SIZE_STEPS: Final = ((1 << 30, "GB"), (1 << 20, "MB"), (1 << 10, "KB"))


def shown(value: Any) -> str:
    """A value on one line; the user and password of a URI are masked, as is every secret."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, timedelta):
        return duration_text(value.total_seconds())
    if isinstance(value, SecretText):
        return MASK
    if isinstance(value, Secrets):
        return ", ".join(f"{name}={MASK}" for name in value)
    if isinstance(value, Mapping) or not isinstance(value, Iterable) or isinstance(value, str | bytes):
        return _USER_INFO.sub(f"{MASK}@", str(value).strip())
    return ",".join(shown(item) for item in value)


def duration_text(seconds: float) -> str:
    """A duration in the largest unit that needs no fraction, for example ``5m`` or ``500ms``."""
    for length, unit in _STEPS:
        if seconds and not seconds % length:
            return f"{int(seconds // length)}{unit}"
    milliseconds = seconds * 1000
    return f"{milliseconds:g}ms" if seconds else "0s"


def size_text(size: int) -> str:
    """A number of bytes in the largest unit that needs no fraction, for example ``32MB``."""
    for length, unit in _SIZE_STEPS:
        if not size % length:
            return f"{size // length}{unit}"
    return f"{size}B"
