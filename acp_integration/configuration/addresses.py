"""How URIs, origins, hosts and paths are read."""

import os
import re
from typing import Any
from urllib.parse import urlsplit

from acp_integration.configuration.values import Invalid, encodable, items, text

# What no URI holds: white space, quotes and brackets, a bare percent sign, a colon in front of which is no scheme.
_NOT_IN_URI = re.compile(r"[\s<>\"{}|\\^`\x00-\x1f\x7f]|%(?![0-9A-Fa-f]{2})|^(?![A-Za-z][A-Za-z0-9+.-]*:)[^/?#]*:")
_AUTHORITY = r"(?:\[[0-9a-f:.]+\]|[^\s/?#@:\[\]]+)(?::[0-9]+)?"
_ORIGIN = re.compile(rf"\*|[a-z][a-z0-9+.-]*://{_AUTHORITY}")
_HOST = re.compile(_AUTHORITY)


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
        if not os.path.isabs(item):
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
    return _uri(value, "a ws:// or wss:// URI", "ws", "wss")


def http_uri(value: Any) -> str:
    """An http:// or https:// URI."""
    return _uri(value, "an http:// or https:// URI", "http", "https")


def _uri(value: Any, expected: str, *schemes: str) -> str:
    spelled = encodable(value.strip()) if isinstance(value, str) else ""
    try:
        parts = urlsplit(spelled)
        usable = bool(parts.hostname) and (parts.port or 1) > 0
    except ValueError:
        raise Invalid("a URI") from None
    if not spelled or _NOT_IN_URI.search(spelled):
        raise Invalid("a URI")
    if parts.scheme.lower() not in schemes or not usable:
        raise Invalid(expected)
    return spelled
