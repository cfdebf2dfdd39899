"""`settings.ACP`: the core's own keys, read when first needed, and the few that are Django's."""

from collections.abc import Mapping
from functools import cache
from typing import TYPE_CHECKING, Any, Final

from django.conf import settings
from django.core.signals import setting_changed
from django.dispatch import receiver
from django.utils.module_loading import import_string

from acp_django.auth import SessionAuthentication
from acp_integration.cli.core import load_settings
from acp_integration.options import EndpointOptions, HostOptions

if TYPE_CHECKING:
    from acp_integration import AcpAgentSettings

SERVE: Final = "serve"
AUTHENTICATION: Final = "authentication"
PERMISSION: Final = "permission"
PLUGINS: Final = "plugins"
CLIENT_CUSTOMIZERS: Final = "client-customizers"
DJANGO_KEYS: Final = (SERVE, AUTHENTICATION, PERMISSION, PLUGINS, CLIENT_CUSTOMIZERS)


def own(key: str) -> Any:
    """The value of a key of `settings.ACP` that only Django knows, or None."""
    return next((value for name, value in _written().items() if _canonical(name) == key), None)


def core_mapping() -> Mapping[str, Any]:
    """`settings.ACP` without Django's own keys, under the root that every spelling of a key starts with."""
    return {"acp": {name: value for name, value in _written().items() if _canonical(name) not in DJANGO_KEYS}}


def project_files() -> tuple[Any, ...]:
    """Where files with settings are looked for: beside the project, never in the working directory."""
    base = getattr(settings, "BASE_DIR", None)
    return () if base is None else (base,)


@cache
def loaded() -> tuple["AcpAgentSettings | None", Mapping[str, str]]:
    """What is set for the agent and where each setting came from; None if nothing is set.

    Raises:
        ConfigurationError: with one line for each bad key.
    """
    mapping = core_mapping()
    return load_settings(mapping["acp"] and mapping, project_files())


def agent_settings() -> "AcpAgentSettings | None":
    """What is set for the agent, or None if nothing is: then the settings library need not be imported."""
    return loaded()[0]


def endpoint_options() -> EndpointOptions:
    """What bounds the endpoint."""
    found = agent_settings()
    return EndpointOptions() if found is None else found.endpoint_options()


def host_options() -> HostOptions:
    """Whether and how the agent is served."""
    found = agent_settings()
    return HostOptions() if found is None else found.host_options()


@cache
def authentication() -> tuple[Any, ...]:
    """An instance of each class in the ``authentication`` list, in order."""
    return tuple(way() for way in objects(AUTHENTICATION)) or (SessionAuthentication(),)


def objects(key: str) -> list[Any]:
    """What the dotted paths, or the objects, under a key of ours name."""
    value = own(key)
    values = [] if value is None else value if isinstance(value, list | tuple) else [value]
    return [import_string(named) if isinstance(named, str) else named for named in values]


@receiver(setting_changed)
def _forget(*, setting: str, **_: Any) -> None:
    if setting in {"ACP", "BASE_DIR"}:
        loaded.cache_clear()
        authentication.cache_clear()


def _written() -> Mapping[str, Any]:
    written: Mapping[str, Any] = getattr(settings, "ACP", None) or {}
    return written


def _canonical(name: str) -> str:
    return name.strip().lower().replace("_", "-")
