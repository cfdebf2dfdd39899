"""`settings.ACP`: the core's own keys, read when first needed, and the few that are Django's."""

from collections.abc import Mapping
from functools import cache
from typing import TYPE_CHECKING, Any, Final

from django.conf import settings
from django.core.signals import setting_changed
from django.dispatch import receiver
from django.utils.module_loading import import_string

from acp_django.auth import SessionAuthentication
from acp_integration.cli.core import configured_clients, load_settings
from acp_integration.configuration import anything_set
from acp_integration.configuration.gathering import gather
from acp_integration.configuration.keys import canonical
from acp_integration.configuration.sources import SECTIONS
from acp_integration.errors import ConfigurationError, UnknownKey
from acp_integration.options import EndpointOptions, HostOptions

if TYPE_CHECKING:
    from acp_integration import AcpAgentSettings, AcpClientSettings

SERVE: Final = "serve"
AUTHENTICATION: Final = "authentication"
PERMISSION: Final = "permission"
PLUGINS: Final = "plugins"
CLIENT_CUSTOMIZERS: Final = "client-customizers"
_ROOT: Final = "acp"
_NEAREST: Final = "acp_integration.configuration.schema.nearest"  # needed for mistakes alone, and not light
DJANGO_KEYS: Final = (SERVE, AUTHENTICATION, PERMISSION, PLUGINS, CLIENT_CUSTOMIZERS)


def own(key: str) -> Any:
    """The value of a key of `settings.ACP` that only Django knows, or None."""
    return next((value for name, value in _written().items() if canonical(name) == key), None)


def core_mapping() -> Mapping[str, Any]:
    """`settings.ACP` without Django's own keys, under the root that every spelling of a key starts with."""
    return {_ROOT: {name: value for name, value in _written().items() if _meant(name) not in DJANGO_KEYS}}


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
    found: tuple[AcpAgentSettings | None, Mapping[str, str]]
    found, _ = gather(lambda: load_settings(mapping[_ROOT] and mapping, project_files()), _refuse_misspelled)
    return found


def agent_settings() -> "AcpAgentSettings | None":
    """What is set for the agent, or None if nothing is: then no settings are made."""
    return loaded()[0]


def clients() -> "Mapping[str, AcpClientSettings]":
    """The settings of each client that is configured, by its name; if none is, nothing is imported.

    Raises:
        ConfigurationError: with one line for each bad key.
    """
    mapping = core_mapping()
    written = any(_meant(name) in {"client", "clients"} for name in mapping[_ROOT])
    if not written and not anything_set(prefix="acp.client", files=project_files()):
        return {}
    return configured_clients(mapping, project_files())


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
    written = getattr(settings, "ACP", None)
    return written if isinstance(written, Mapping) else {}


def _meant(name: str) -> str:
    """What a key starts with, or, if there is no such thing, what is spelled most like it."""
    start, known = canonical(name.partition(".")[0]), (*DJANGO_KEYS, *SECTIONS)
    found: str = start if start in known else import_string(_NEAREST)(start, known)
    return found


def _refuse_misspelled() -> None:
    if getattr(settings, "ACP", None) and not _written():
        raise ConfigurationError("settings.ACP is not a dict")
    meant = {name: _meant(name) for name in _written()}
    wrong = {name: key for name, key in meant.items() if key in DJANGO_KEYS and canonical(name) != key}
    if wrong:
        lines = (f"{_ROOT}.{name} is not a known key; did you mean {_ROOT}.{key}?" for name, key in wrong.items())
        raise UnknownKey(*lines, keys=tuple(wrong))
