"""What plugins add, found without the plugin library where there is none: it is slow to import."""

from collections.abc import Iterable, Sequence
from importlib import import_module
from typing import Any, Protocol


class Extensions(Protocol):
    """What plugins give for each hook of `acp_integration.plugins`."""

    def collect(self, hook: str, **arguments: Any) -> list[Any]:
        """What all of them give for a hook, in the order of their registration."""
        ...

    def first(self, hook: str, **arguments: Any) -> Any:
        """What the first one that has something gives for a hook, or None."""
        ...


class _NoPlugins:
    def collect(self, hook: str, **arguments: Any) -> list[Any]:  # noqa: ARG002  # nobody is asked
        return []

    def first(self, hook: str, **arguments: Any) -> Any:  # noqa: ARG002  # nobody is asked
        return None


def extensions_of(given: Iterable[Any] = (), names: Sequence[str] = ()) -> Extensions:
    """What the plugins of one agent or client add; arguments and errors are those of `Plugins`."""
    plugins = [*given]
    if not plugins and not names:
        return _NoPlugins()
    found: Extensions = import_module("acp_integration.plugins").Plugins(plugins, names)
    return found
