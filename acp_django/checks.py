"""System checks: what would fail or be unsafe when the agent is served, said by `manage.py check`."""

import os
import sys
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final

from django.conf import settings
from django.core.checks import CheckMessage, Error, Warning  # noqa: A004  # Django's own names
from django.http.request import validate_host
from django.urls import URLPattern, URLResolver, get_resolver
from django.utils.module_loading import import_string

from acp_django import conf
from acp_django.asgi import AcpAsgi
from acp_django.serving import agent_factory
from acp_django.views import is_acp_view
from acp_integration.errors import ConfigurationError, DiscoveryError, HandlerError, SeveralAgents

AGENT_COMMANDS: Final = frozenset({"check", "runserver", "acp", "acp_stdio"})
_SDK: Final = "agent-client-protocol"
_DEPTH: Final = 5  # routers in routers in front of the wrapper


def check_project(app_configs: Any, **_: Any) -> list[CheckMessage]:
    """Everything that can be told before the agent is served."""
    if app_configs is not None and all(app.label != "acp_django" for app in app_configs):
        return []
    bad_settings = [*_bad_keys(), *_bad_paths()]
    if bad_settings:
        return bad_settings
    found = [*_sdk(), *_transport()]
    if conf.host_options().enabled and _agent_matters():
        found += _agent()
    return found


def _bad_keys() -> Iterator[CheckMessage]:
    try:
        conf.agent_settings()
    except ConfigurationError as error:
        for problem in error.problems:
            yield Error(problem, hint="docs/settings.md lists every key", id="acp_django.E001")


def _bad_paths() -> Iterator[CheckMessage]:
    for key in conf.DJANGO_KEYS:
        try:
            conf.objects(key)
        except ImportError as error:
            yield Error(f"settings.ACP[{key!r}] cannot be imported: {error}", id="acp_django.E002")


def _sdk() -> Iterator[CheckMessage]:
    installed = version(_SDK)
    numbers = tuple(int(part) if part.isdecimal() else 0 for part in installed.split(".")[:3])
    if not (0, 12, 1) <= numbers < (2,):
        yield Error(
            f"{_SDK} {installed} is installed, which is not supported", hint=f"{_SDK}>=0.12.1,<2", id="acp_django.E003"
        )


def _agent() -> Iterator[CheckMessage]:
    try:
        agent_factory()
    except SeveralAgents as error:
        yield Error(str(error), id="acp_django.E004")
    except HandlerError as error:
        yield Error(str(error), obj=error.owner or None, id="acp_django.E006")
    except DiscoveryError as error:
        yield Error(str(error), id="acp_django.E005")


def _transport() -> Iterator[CheckMessage]:
    if not _endpoint_is_routed():
        return
    if not getattr(settings, "ASGI_APPLICATION", None):
        yield Warning(
            "acp_django.urls is included, but there is no ASGI_APPLICATION: under WSGI the agent answers 501",
            hint="name the application of asgi.py in ASGI_APPLICATION and serve it with an ASGI server",
            id="acp_django.W001",
        )
    elif not _wrapped():
        yield Warning(
            "ASGI_APPLICATION does not use acp_django.asgi.acp_asgi: no WebSocket, a thread for each open stream",
            hint="asgi.py: application = acp_asgi(get_asgi_application())",
            id="acp_django.W002",
        )
    yield from _admission()
    yield from _workers()


def _admission() -> Iterator[CheckMessage]:
    options = conf.endpoint_options()
    if not options.require_auth and conf.own(conf.PERMISSION) is None:
        yield Warning(
            "acp.agent.transport.http.require-auth is off and ACP['permission'] is not set: anybody may use the agent",
            hint="silence this if something else guards its URL",
            id="acp_django.W003",
        )
    if "*" in settings.ALLOWED_HOSTS:
        yield Warning(
            "ALLOWED_HOSTS allows any host: a page that makes its own name resolve to this machine reaches the agent",
            id="acp_django.W004",
        )
    strangers = [host for host in options.allowed_hosts or () if not validate_host(host, settings.ALLOWED_HOSTS)]
    if strangers and settings.ALLOWED_HOSTS:
        yield Warning(
            f"acp.agent.transport.http.allowed-hosts names {', '.join(strangers)}, which ALLOWED_HOSTS refuses before",
            id="acp_django.W005",
        )
    refused = sorted(set(options.allowed_origins) - set(settings.CSRF_TRUSTED_ORIGINS))
    if refused and any(getattr(way, "cookie", False) for way in conf.authentication()):
        yield Warning(
            f"Browsers at {', '.join(refused)} may call the agent, but not for a user who is logged in by cookie",
            hint="add the origins to CSRF_TRUSTED_ORIGINS",
            id="acp_django.W006",
        )


def _workers() -> Iterator[CheckMessage]:
    workers = os.environ.get("WEB_CONCURRENCY", "")
    if workers.isdecimal() and int(workers) > 1 and conf.host_options().session_store.startswith("memory"):
        yield Warning(
            f"WEB_CONCURRENCY is {workers}, and acp.agent.session-store keeps sessions in the memory of one worker",
            hint="keep them in a store that all workers share",
            id="acp_django.W007",
        )


def _endpoint_is_routed() -> bool:
    if not getattr(settings, "ROOT_URLCONF", None):
        return False
    return any(is_acp_view(pattern.callback) for pattern in _patterns(get_resolver()))


def _patterns(resolver: URLResolver) -> Iterator[URLPattern]:
    for entry in resolver.url_patterns:
        if isinstance(entry, URLResolver):
            yield from _patterns(entry)
        else:
            yield entry


def _wrapped() -> bool:
    """Whether the wrapper is anywhere in the ASGI application; its server reports one that cannot be imported."""
    try:
        return _holds_wrapper(import_string(settings.ASGI_APPLICATION), _DEPTH)
    except ImportError:
        return True


def _holds_wrapper(value: Any, depth: int) -> bool:
    if isinstance(value, AcpAsgi) or depth == 0:
        return isinstance(value, AcpAsgi)
    if isinstance(value, dict):
        inner = list(value.values())
    elif isinstance(value, list | tuple):
        inner = list(value)
    else:
        inner = list(getattr(value, "__dict__", {}).values())
    return any(_holds_wrapper(part, depth - 1) for part in inner)


def _agent_matters() -> bool:
    """Whether to import the agent: other commands check the project too, and are not to wait for an LLM's SDK."""
    program, *arguments = [*sys.argv, ""]
    return Path(program).name not in {"manage.py", "django-admin"} or arguments[0] in AGENT_COMMANDS
