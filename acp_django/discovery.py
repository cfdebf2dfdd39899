"""The project's one agent: named in `settings.ACP`, or what some app's `acp_agents.py` defines."""

from typing import Final

from django.apps import apps
from django.utils.module_loading import module_has_submodule

from acp_django import conf
from acp_integration.discovery import AgentCandidate, candidate_of, find_single
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
    with_agents = [app.name for app in apps.get_app_configs() if module_has_submodule(app.module, MODULE)]
    candidate = find_single(*(f"{name}.{MODULE}" for name in with_agents), enabled_property=_ENABLED)
    if candidate is None:
        raise DiscoveryError(
            f"No agent: define an @acp_agent in the {MODULE}.py of an installed app, or set {_ENABLED}=false"
        )
    return candidate
