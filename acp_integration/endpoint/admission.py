"""Who is let in, before anything else of a request is looked at."""

import ipaddress
import logging
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Final

import msgspec

from acp_integration.caller import Caller
from acp_integration.endpoint.exchange import Refusal, Scope, header_values, http_request
from acp_integration.endpoint.origin import HostPolicy, OriginPolicy
from acp_integration.options import EndpointOptions

logger = logging.getLogger(__name__)

CALLER_KEY: Final = "acp_integration.caller"
"""Where an application in front of the endpoint leaves the `Caller` in the ASGI scope."""

REQUIRE_AUTH: Final = "acp.agent.transport.http.require-auth"
ALLOWED_HOSTS: Final = "acp.agent.transport.http.allowed-hosts"
ALLOWED_ORIGINS: Final = "acp.agent.transport.http.allowed-origins"

_SHOWN: Final = 100
_FORWARDED: Final = ("x-forwarded-for", "x-real-ip", "forwarded")


def opened_by(scope: Scope, caller: Caller) -> Caller:
    """The caller, with the request that opens a connection for it."""
    return caller if caller.http is not None else msgspec.structs.replace(caller, http=http_request(scope))


class Admission:
    """Checks host, origin and caller of every request and every handshake."""

    def __init__(self, options: EndpointOptions) -> None:
        self._origins = OriginPolicy(options.allowed_origins, options.allowed_hosts)
        self._hosts = None if options.allowed_hosts is None else HostPolicy(options.allowed_hosts)
        self._require_auth = options.require_auth

    def admit(self, scope: Scope) -> Caller:
        """Let a request in and say who sent it.

        Raises:
            Refusal: with status 403, naming the setting that would let it in.
        """
        headers = header_values(scope)
        self._check_origin(headers.get("origin"), scope.get("scheme", "http"))
        self._check_host(headers.get("host"))
        caller: Caller = scope.get(CALLER_KEY) or Caller()
        if self._require_auth and not _known(caller) and not _is_local(scope, headers):
            raise Refusal(403, f"Authentication is required: guard the endpoint, or set {REQUIRE_AUTH}=false")
        return caller

    def _check_origin(self, origin: str | None, scheme: str) -> None:
        if not self._origins.allows(origin, scheme):
            logger.warning("Refused the origin %s: not in %s", _shown(origin), ALLOWED_ORIGINS)
            raise Refusal(403, "Origin not allowed")

    def _check_host(self, host: str | None) -> None:
        if self._hosts is not None and not self._hosts.allows(host):
            logger.warning("Refused the host %s: not in %s", _shown(host), ALLOWED_HOSTS)
            raise Refusal(403, f"Host {_shown(host)} not allowed: add it to {ALLOWED_HOSTS}")


def _known(caller: Caller) -> bool:
    return caller.guarded or caller.principal is not None or caller.user is not None


def _is_local(scope: Scope, headers: Mapping[str, str]) -> bool:
    """Whether the peer is this machine; one that a proxy speaks for counts as what the proxy says it is."""
    client: tuple[Any, ...] | None = scope.get("client")
    if not client or not _is_loopback(str(client[0])):
        return False
    if headers.get("forwarded"):
        return False
    named = [address for name in _FORWARDED for address in headers.get(name, "").split(",") if address.strip()]
    return all(_is_loopback(address.strip()) for address in named)


@lru_cache(maxsize=128)  # asked at every request, and most come from few addresses
def _is_loopback(address: str) -> bool:
    try:
        parsed = ipaddress.ip_address(address)
    except ValueError:
        return False
    mapped = getattr(parsed, "ipv4_mapped", None)
    return parsed.is_loopback or (mapped is not None and mapped.is_loopback)


def _shown(value: str | None) -> str:
    """A header's value as it may stand in a log and in an answer."""
    return ascii((value or "")[:_SHOWN])
