"""The errors among the system checks: what keeps the project's agent from being served at all.

Apart from the warnings, so that a command that serves stdio imports neither the URLs nor the ASGI application.
"""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from django.core.checks import CheckMessage, Error

from acp_django import conf
from acp_django.serving import serving
from acp_integration.configuration.gathering import gather
from acp_integration.errors import ConfigurationError, DiscoveryError, HandlerError, SeveralAgents

AGENT_COMMANDS: Final = frozenset({"check", "runserver", "acp", "acp_stdio"})
_AGENT_ERRORS: Final[dict[type[DiscoveryError], int]] = {SeveralAgents: 4, HandlerError: 6}


def project_errors() -> list[CheckMessage]:
    """Everything that keeps the agent from being served."""
    return settings_errors() or agent_errors()


def settings_errors() -> list[CheckMessage]:
    """What is wrong with the settings."""
    return [*_bad_keys(), *_bad_paths()]


def agent_errors() -> list[CheckMessage]:
    """What is wrong with the agent, which is imported for it; the settings must be fine."""
    return [*_agent()] if conf.host_options().enabled and _agent_matters() else []


def _error(number: int, text: object) -> CheckMessage:
    return Error(str(text), id=f"acp_django.E{number:03}")


def _bad_keys() -> Iterator[CheckMessage]:
    try:
        gather(conf.agent_settings, conf.clients)
    except ConfigurationError as error:
        yield from (_error(1, problem) for problem in error.problems)


def _bad_paths() -> Iterator[CheckMessage]:
    for key in conf.DJANGO_KEYS:
        try:
            conf.objects(key)
        except ImportError as error:
            yield _error(2, f"settings.ACP[{key!r}] cannot be imported: {error}")


def _agent() -> Iterator[CheckMessage]:
    try:
        serving()
    except DiscoveryError as error:
        yield _error(_AGENT_ERRORS.get(type(error), 5), error)


def _agent_matters() -> bool:
    """Whether to import the agent: other commands check the project too, and are not to wait for an LLM's SDK."""
    program, *arguments = [*sys.argv, ""]
    return Path(program).name not in {"manage.py", "django-admin"} or arguments[0] in AGENT_COMMANDS
