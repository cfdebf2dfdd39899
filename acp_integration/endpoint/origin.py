"""Which pages in a browser may talk to the endpoint, and under which host names it answers."""

import re
from collections.abc import Iterable
from typing import Final

_LOOPBACK_ORIGIN: Final = re.compile(r"https?://(localhost|127\.0\.0\.1|\[::1\])(:\d{1,5})?")
_PORT: Final = re.compile(r":\d{1,5}$")
_SAME_SCHEME: Final = {"http": "http", "https": "https", "ws": "http", "wss": "https"}
_STAR: Final = re.escape("://*.")
_ALL_BELOW: Final = r"://(?:[^\s/?#@:]+\.)?"
ANY: Final = "*"


class ListedOrigins:
    """Some origins; ``https://*.example.com`` stands for a domain and all below it, over this scheme."""

    def __init__(self, origins: Iterable[str]) -> None:
        escaped = (re.escape(_normalised(origin)) for origin in origins)
        self._patterns = [re.compile(pattern.replace(_STAR, _ALL_BELOW)) for pattern in escaped]

    def __contains__(self, origin: str) -> bool:
        wanted = _normalised(origin)
        return any(pattern.fullmatch(wanted) for pattern in self._patterns)


class OriginPolicy:
    """Decides on the ``Origin`` header; only browsers send one, so a request without it is let in.

    A loopback page is allowed on any port, a listed origin, and the pages of an allowed host over the scheme of the
    request. That keeps out a page that made its own name resolve to this machine.
    """

    def __init__(self, allowed_origins: Iterable[str], allowed_hosts: Iterable[str] | None = None) -> None:
        self._listed = ListedOrigins(allowed_origins)
        self._hosts = HostPolicy([host for host in allowed_hosts or () if host.strip() != ANY])

    def allows(self, origin: str | None, scheme: str) -> bool:
        """Whether a request that came over `scheme` (http, https, ws or wss) may name this origin."""
        if origin is None or ANY in self._listed:
            return True
        wanted = _normalised(origin)
        return bool(_LOOPBACK_ORIGIN.fullmatch(wanted)) or wanted in self._listed or self._own(wanted, scheme)

    def _own(self, origin: str, scheme: str) -> bool:
        origin_scheme, separator, host = origin.partition("://")
        return bool(separator) and origin_scheme == _SAME_SCHEME.get(scheme) and self._hosts.allows(host)


class HostPolicy:
    """Decides on the ``Host`` header: a name with or without port, ``.example.com`` for all below, ``*`` for any."""

    def __init__(self, allowed_hosts: Iterable[str]) -> None:
        self._allowed = frozenset(host.strip().lower() for host in allowed_hosts)

    def allows(self, host: str | None) -> bool:
        """Whether the endpoint answers under this name."""
        if ANY in self._allowed:
            return True
        full = (host or "").strip().lower()
        name = _PORT.sub("", full)
        return full in self._allowed or name in self._allowed or any(_below(name, parent) for parent in self._allowed)


def _below(name: str, parent: str) -> bool:
    return parent.startswith(".") and (name.endswith(parent) or name == parent[1:])


def _normalised(origin: str) -> str:
    return origin.strip().lower().removesuffix("/")
