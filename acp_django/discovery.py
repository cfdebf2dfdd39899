"""The project's one agent: named in `settings.ACP`, or what some app's `acp_agents.py` defines."""

from pathlib import Path
from typing import Final

from django.apps import apps
from django.utils.module_loading import module_has_submodule

from acp_django import conf
from acp_integration.discovery import AgentCandidate, candidate_of, find_single, hint_at_unmarked
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
    modules = [f"{name}.{MODULE}" for name in with_agents]
    candidate = find_single(*modules, enabled_property=_ENABLED)
    if candidate is None:
        raise DiscoveryError(
            f"No agent: define an @acp_agent in the {MODULE}.py of an installed app, or set {_ENABLED}=false"
            + (hint_at_unmarked(*modules) or _hint_at_apps())
        )
    return candidate


def _hint_at_apps() -> str:
    """Which folder of the project has the module and is no installed app."""
    inside = {Path(app.path) for app in apps.get_app_configs()}
    files = [file for base in conf.project_files() for file in sorted(Path(base).glob(f"*/{MODULE}.py"))]
    names = ", ".join(file.parent.name for file in files if file.parent not in inside)
    return f"; not in INSTALLED_APPS, though with such a file: {names}" if names else ""
