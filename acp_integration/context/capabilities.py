"""Whether the client announced a capability."""

import re
from functools import cache
from typing import Any, Final

from acp_integration.errors import CapabilityMissing

_HUMP: Final = re.compile(r"(?<=[a-z])(?=[A-Z])")


def supports(capabilities: Any, name: str) -> bool:
    """Whether capabilities hold one, named as on the wire, for example ``fs.readTextFile``."""
    value = capabilities
    for attribute in _attributes(name):
        if value is None:
            return False
        value = getattr(value, attribute)
    return value is not None and value is not False


def require(capabilities: Any, name: str) -> None:
    """Do nothing if capabilities hold one.

    Raises:
        CapabilityMissing: if they do not.
    """
    if not supports(capabilities, name):
        raise CapabilityMissing(name)


@cache
def _attributes(name: str) -> tuple[str, ...]:
    return tuple(_HUMP.sub("_", part).lower() for part in name.split("."))
