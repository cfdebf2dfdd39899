"""Extension points for installed packages and for objects given to a builder, one manager for each agent.

A plugin is a module or object whose functions are marked with `hookimpl` and named as the hooks below; installed ones
are entry points of the group ``acp_integration``. All hooks are called once, when the agent or client is built.
"""

import sys
from collections.abc import Iterable, Sequence
from typing import Any, Final

import pluggy

from acp_integration.binding import ArgumentResolver, ReturnValueHandler
from acp_integration.errors import ConfigurationError
from acp_integration.execution import HandlerExecutor
from acp_integration.interception import Interceptor
from acp_integration.observers import Observer

__all__ = [
    "GROUP",
    "ArgumentResolver",
    "HandlerExecutor",
    "Interceptor",
    "Observer",
    "Plugins",
    "ReturnValueHandler",
    "hookimpl",
    "hookspec",
]

GROUP: Final = "acp_integration"

hookspec: Final = pluggy.HookspecMarker(GROUP)
hookimpl: Final = pluggy.HookimplMarker(GROUP)


@hookspec
def acp_interceptors(agent: Any) -> Sequence[Interceptor]:  # type: ignore[empty-body]
    """Interceptors to put around the handlers of an agent, in addition to those the builder was given."""


@hookspec
def acp_argument_resolvers(agent: Any) -> Sequence[ArgumentResolver]:  # type: ignore[empty-body]
    """What supplies parameters of an agent's handlers before the built-in rules."""


@hookspec
def acp_return_value_handlers(agent: Any) -> Sequence[ReturnValueHandler]:  # type: ignore[empty-body]
    """What makes answers of an agent's handlers before the built-in rules."""


@hookspec
def acp_client_customizers(name: str) -> Sequence[Any]:  # type: ignore[empty-body]
    """What is called with each client builder before the client is made."""


@hookspec(firstresult=True)
def acp_handler_executor(agent: Any) -> HandlerExecutor | None:
    """Where an agent's sync handlers run, if the builder was given nothing; the first that is not None counts."""


@hookspec
def acp_observers(agent: Any) -> Sequence[Observer]:  # type: ignore[empty-body]
    """Who is told of an agent's connections, sessions and turns."""


class Plugins:
    """The plugins of one agent or client.

    Args:
        given: plugin objects, used as they are.
        names: installed plugins to use, or ``all``; one behind a minus is never used.

    Raises:
        ConfigurationError: for a name that nothing installed has, and for a function that is no hook.
    """

    def __init__(self, given: Iterable[Any] = (), names: Sequence[str] = ()) -> None:
        self._manager = pluggy.PluginManager(GROUP)
        self._manager.add_hookspecs(sys.modules[__name__])
        for name in names:
            if name.startswith("-"):
                self._manager.set_blocked(name[1:])
        try:
            self._register(given, [name for name in names if not name.startswith("-")])
            self._manager.check_pending()
        except pluggy.PluginValidationError as error:
            raise ConfigurationError(f"A plugin does not fit: {error}") from None

    def collect(self, hook: str, **arguments: Any) -> list[Any]:
        """What all plugins give for a hook, in the order of their registration."""
        given = getattr(self._manager.hook, hook)(**arguments)
        return [item for part in reversed(given) for item in part or ()]

    def first(self, hook: str, **arguments: Any) -> Any:
        """What the first plugin that has something gives for a hook, or None."""
        return getattr(self._manager.hook, hook)(**arguments)

    def _register(self, given: Iterable[Any], names: Sequence[str]) -> None:
        for plugin in given:
            self._manager.register(plugin, getattr(plugin, "name", None))
        if "all" in names:
            self._manager.load_setuptools_entrypoints(GROUP)
            return
        for name in names:
            self._manager.load_setuptools_entrypoints(GROUP, name)
            if not self._manager.has_plugin(name) and not self._manager.is_blocked(name):
                raise ConfigurationError(
                    f"acp.agent.plugins={name} names no installed plugin: is its package installed?"
                )
