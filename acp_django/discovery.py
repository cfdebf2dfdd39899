"""The project's one agent: named in `settings.ACP`, or what some app's `acp_agents.py` defines."""

import sys
from collections.abc import Iterator
from types import ModuleType
from typing import Final

from django.apps import apps
from django.utils.module_loading import autodiscover_modules

from acp_django import conf
from acp_integration.discovery import AgentCandidate, candidate_of, discovered, require_single
from acp_integration.errors import DiscoveryError

MODULE: Final = "acp_agents"
_ENABLED: Final = "acp.agent.enabled"


def find_agent() -> AgentCandidate:
    """The agent to serve; the modules of the apps are imported now, and by nothing before.

    Raises:
        DiscoveryError: if there is no agent, or more than one, or a module cannot be imported.
    """
    for named in conf.objects(conf.SERVE):
        return candidate_of(named)
    candidate = require_single(discovered(*_agent_modules()), _ENABLED)
    if candidate is None:
        raise DiscoveryError(
            f"No agent: define an @acp_agent in the {MODULE}.py of an installed app, or set {_ENABLED}=false"
        )
    return candidate


def _agent_modules() -> Iterator[ModuleType]:
    try:
        autodiscover_modules(MODULE)
    except Exception as error:
        raise DiscoveryError(f"An {MODULE}.py cannot be imported: {error!r}") from error
    for app in apps.get_app_configs():
        if module := sys.modules.get(f"{app.name}.{MODULE}"):
            yield module
