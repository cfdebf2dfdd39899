"""System checks: what would fail or be unsafe when the agent is served, said by `manage.py check`."""

import os
from collections.abc import Iterator
from importlib.metadata import version
from typing import Any, Final

from django.conf import settings
from django.core.checks import CheckMessage, Error, Warning  # noqa: A004  # Django's own name
from django.http.request import validate_host
from django.urls import URLPattern, URLResolver, get_resolver
from django.utils.module_loading import import_string

from acp_django import conf
from acp_django.asgi import AcpAsgi
from acp_django.faults import agent_errors, settings_errors
from acp_django.views import is_acp_view
from acp_integration.endpoint.origin import ListedOrigins

_SDK: Final = "agent-client-protocol"
_DEPTH: Final = 5  # routers in routers in front of the wrapper
_WITHOUT_ASGI: Final = "acp_django.urls is included, but there is no ASGI_APPLICATION: under WSGI the agent answers 501"
_WITHOUT_WRAPPER: Final = (
    "ASGI_APPLICATION does not use acp_django.asgi.acp_asgi: no WebSocket, and a thread for each open stream"
)
_WITHOUT_GUARD: Final = (
    "acp.agent.transport.http.require-auth is off and ACP['permission'] is not set: anybody may use the agent, "
    "unless something else guards its URL"
)
_ANY_HOST: Final = "ALLOWED_HOSTS allows any host: a page that makes its name resolve to this machine reaches the agent"


def check_project(app_configs: Any, **_: Any) -> list[CheckMessage]:
    """Everything that can be told before the agent is served."""
    if app_configs is not None and all(app.label != "acp_django" for app in app_configs):
        return []
    bad_settings = settings_errors()
    if bad_settings:
        return bad_settings
    served = [*_application(), *_admission(), *_workers()] if _endpoint_is_routed() else []
    return [*served, *_sdk(), *agent_errors()]


def _warning(number: int, text: str) -> CheckMessage:
    return Warning(text, id=f"acp_django.W{number:03}")


def _sdk() -> Iterator[CheckMessage]:
    installed = version(_SDK)
    numbers = tuple(int(part) if part.isdecimal() else 0 for part in installed.split(".")[:3])
    if not (0, 12, 1) <= numbers < (2,):
        yield Error(f"{_SDK} {installed} is installed, and {_SDK}>=0.12.1,<2 is needed", id="acp_django.E003")


def _application() -> Iterator[CheckMessage]:
    named = getattr(settings, "ASGI_APPLICATION", None)
    if not named:
        yield _warning(1, _WITHOUT_ASGI)
    elif not _holds_wrapper(import_string(named), _DEPTH):
        yield _warning(2, _WITHOUT_WRAPPER)


def _admission() -> Iterator[CheckMessage]:
    options = conf.endpoint_options()
    if not options.require_auth and conf.own(conf.PERMISSION) is None:
        yield _warning(3, _WITHOUT_GUARD)
    if "*" in settings.ALLOWED_HOSTS:
        yield _warning(4, _ANY_HOST)
    strangers = [host for host in options.allowed_hosts or () if not validate_host(host, settings.ALLOWED_HOSTS)]
    if strangers and settings.ALLOWED_HOSTS:
        names = ", ".join(strangers)
        yield _warning(5, f"acp.agent.transport.http.allowed-hosts names {names}, which ALLOWED_HOSTS refuses before")
    trusted = ListedOrigins(settings.CSRF_TRUSTED_ORIGINS)
    refused = ", ".join(origin for origin in options.allowed_origins if origin not in trusted)
    if refused and any(getattr(way, "cookie", False) for way in conf.authentication()):
        text = "may call the agent, but for no user who is logged in by cookie: CSRF_TRUSTED_ORIGINS lacks them"
        yield _warning(6, f"Browsers at {refused} {text}")


def _workers() -> Iterator[CheckMessage]:
    workers = os.environ.get("WEB_CONCURRENCY", "")
    if workers.isdecimal() and int(workers) > 1 and conf.host_options().session_store.startswith("memory"):
        text = "and acp.agent.session-store keeps sessions in the memory of one of them"
        yield _warning(7, f"WEB_CONCURRENCY asks for {workers} workers, {text}")


def _endpoint_is_routed() -> bool:
    routed = bool(getattr(settings, "ROOT_URLCONF", None))
    return routed and any(is_acp_view(pattern.callback) for pattern in _patterns(get_resolver()))


def _patterns(resolver: URLResolver) -> Iterator[URLPattern]:
    for entry in resolver.url_patterns:
        if isinstance(entry, URLResolver):
            yield from _patterns(entry)
        else:
            yield entry


def _holds_wrapper(value: Any, depth: int) -> bool:
    """Whether the wrapper is anywhere in an application."""
    if isinstance(value, AcpAsgi) or depth == 0:
        return isinstance(value, AcpAsgi)
    named = value if isinstance(value, dict) else getattr(value, "__dict__", {})
    inner = value if isinstance(value, list | tuple) else named.values()
    return any(_holds_wrapper(part, depth - 1) for part in inner)
