"""Putting an agent together: everything is read and checked here, once, for any number of connections."""

import inspect
from collections.abc import Callable, Iterable
from importlib import import_module
from typing import TYPE_CHECKING, Any

from acp_integration import store as stores
from acp_integration.agents import declaration_of
from acp_integration.binding import ArgumentResolver, BoundAgent, HandlerScope, ReturnValueHandler, Surroundings, bind
from acp_integration.caller import LOCAL, Caller
from acp_integration.completion import advertised, complete, observed
from acp_integration.configuration import project_directory
from acp_integration.discovery import AgentCandidate, resolve
from acp_integration.errors import ConfigurationError, HandlerError
from acp_integration.execution import HandlerExecutor, ThreadExecutor, ThreadLimit
from acp_integration.extensions import Extensions, extensions_of
from acp_integration.interception import Chain
from acp_integration.observers import Observers
from acp_integration.options import RuntimeOptions
from acp_integration.peer import Peer
from acp_integration.runtime import AgentRuntime
from acp_integration.sdkagents import SdkAgentClass, is_sdk_agent
from acp_integration.store import SessionStore
from acp_integration.transports.transport import Transport

if TYPE_CHECKING:
    from acp_integration.client import ClientBuilder, build_client

__all__ = ["AgentBuilder", "AgentFactory", "ClientBuilder", "build_client"]

AgentFactory = Callable[[Transport, Caller], AgentRuntime]


class AgentBuilder:
    """Builds the runtimes of one agent; every connection is served by the same instance.

    A builder can be used any number of times: what was built is not changed by what is added later.

    Args:
        agent: a class or function marked with `@acp_agent`, an instance of such a class, or an `AgentCandidate`.
        settings: the agent's settings; None for the defaults.
        executor: where sync handlers run; own threads if None.
        interceptors: what stands around every handler call, see `Interceptor`.
        argument_resolvers: what supplies parameters before the built-in rules.
        return_value_handlers: what makes answers before the built-in rules.
        observers: who is told of connections, sessions and turns, see `Observer`.
        plugins: objects with hooks, in addition to the installed plugins that the settings name.
        store: what keeps sessions; the one that the settings name if None.
        scope: how a framework supplies parameters.
    """

    def __init__(  # noqa: PLR0913  # one argument for each extension point
        self,
        agent: Any,
        settings: Any = None,
        *,
        executor: HandlerExecutor | None = None,
        interceptors: Iterable[Any] = (),
        argument_resolvers: Iterable[ArgumentResolver] = (),
        return_value_handlers: Iterable[ReturnValueHandler] = (),
        observers: Iterable[Any] = (),
        plugins: Iterable[Any] = (),
        store: SessionStore | None = None,
        scope: HandlerScope | None = None,
    ) -> None:
        self._agent = agent
        self.options = RuntimeOptions() if settings is None else settings.runtime_options()
        self._executor = executor
        self.interceptors = [*interceptors]
        self.argument_resolvers = [*argument_resolvers]
        self.return_value_handlers = [*return_value_handlers]
        self.observers = [*observers]
        self.plugins = [*plugins]
        self._plugin_names = () if settings is None else settings.host_options().plugins
        self._executor_name = None if settings is None else settings.host_options().handler_executor
        self._store = store if store is not None or settings is None else _named_store(settings, agent)
        self._scope = scope

    def build(self, transport: Transport, caller: Caller = LOCAL) -> AgentRuntime:
        """The runtime of the agent on one transport.

        Raises:
            HandlerError: if the agent is declared wrongly: names class, method, parameter and the fix.
        """
        return AgentRuntime(self._bind(), transport, caller, self.options)

    def build_factory(self) -> AgentFactory:
        """What makes a fresh runtime for each connection; nothing is read or checked again.

        Raises:
            HandlerError: if the agent is declared wrongly: names class, method, parameter and the fix.
        """
        bound, options = self._bind(), self.options

        def factory(transport: Transport, caller: Caller = LOCAL) -> AgentRuntime:
            return AgentRuntime(bound, transport, caller, options)

        return factory

    def describe(self) -> dict[str, Any]:
        """What would be served, as JSON values: the agent, its handlers, and what it advertises.

        Raises:
            HandlerError: if the agent is declared wrongly: names class, method, parameter and the fix.
        """
        agent, _ = _instance_of(self._agent)
        bound = self._bind()
        derived = advertised(bound)
        return {
            "agent": {**derived["agentInfo"], "class": f"{agent.__module__}.{agent.__qualname__}"},
            "handlers": [
                {"method": method, "name": handler.name, "kind": handler.kind}
                for method, handler in sorted(bound.handlers.items())
            ],
            "initialize": derived,
        }

    def _bind(self) -> BoundAgent:
        agent, instance = _instance_of(self._agent)
        plugins = extensions_of(self.plugins, self._plugin_names)

        def with_plugins(given: list[Any], hook: str) -> tuple[Any, ...]:
            return (*given, *plugins.collect(hook, agent=agent))

        surroundings = Surroundings(
            executor=self._handler_executor(plugins, agent),
            resolvers=with_plugins(self.argument_resolvers, "acp_argument_resolvers"),
            return_handlers=with_plugins(self.return_value_handlers, "acp_return_value_handlers"),
            scope=self._scope,
        )
        chain = Chain(with_plugins(self.interceptors, "acp_interceptors"))
        observers = Observers(with_plugins(self.observers, "acp_observers"))
        if is_sdk_agent(agent):
            return self._bind_sdk_agent(SdkAgentClass(agent, instance), chain, observers)
        return observed(complete(bind(agent, instance, surroundings), chain, self._store), observers)

    def _bind_sdk_agent(self, agent: SdkAgentClass, chain: Chain, observers: Observers) -> BoundAgent:
        def bind_for(peer: Peer | None) -> BoundAgent:
            return observed(complete(agent.bind(peer), chain, self._store, for_sdk=True), observers)

        bound = bind_for(None)
        bound.connected = bind_for
        return bound

    def _handler_executor(self, plugins: Extensions, agent: Any) -> HandlerExecutor:
        if self._executor_name == "none":
            return self._threads()
        if self._executor_name is not None:
            return _named_executor(self._executor_name)
        return self._executor or plugins.first("acp_handler_executor", agent=agent) or self._threads()

    def _threads(self) -> HandlerExecutor:
        return ThreadExecutor(ThreadLimit(self.options.sync_threads))


def _named_executor(name: str) -> HandlerExecutor:
    """The executor that the settings name; a class is instantiated."""
    found = resolve(name)
    executor: Any = found() if inspect.isclass(found) else found
    if not all(callable(getattr(executor, verb, None)) for verb in ("run", "scope")):
        raise ConfigurationError(f"acp.agent.handler-executor={name} is no handler executor: it has no run and scope")
    given: HandlerExecutor = executor
    return given


def _named_store(settings: Any, agent: Any) -> SessionStore | None:
    """The store that the settings name; a relative path begins beside the agent's project."""
    name = settings.host_options().session_store
    if name == "none":  # who waits for the start of such an agent does not wait for the stores
        return None
    declared = agent.agent_class if isinstance(agent, AgentCandidate) else agent
    plain = declared if inspect.isclass(declared) or inspect.isfunction(declared) else type(declared)
    return stores.open_store(name, project_directory(plain.__module__))


def _instance_of(agent: Any) -> tuple[Any, Any]:
    """The declared class or function, and what is served of it."""
    if isinstance(agent, AgentCandidate):
        if _is_made_here(agent):
            return _instance_of(agent.agent_class)
        return agent.agent_class, _made(agent.agent_class, lambda: agent.instance)
    if is_sdk_agent(agent):
        return agent, None
    if inspect.isfunction(agent):
        return agent, agent
    return (agent, _made(agent, agent)) if inspect.isclass(agent) else (_declared_class(agent), agent)


def _made(owner: Callable[..., Any], make: Callable[[], Any]) -> Any:
    try:
        return make()
    except Exception as error:
        name = f"{owner.__module__}.{owner.__qualname__}"
        problem = f"{name} cannot be made without arguments ({error!r}): pass an instance"
        raise HandlerError(problem, owner=name) from error


def _is_made_here(candidate: AgentCandidate) -> bool:
    """Whether a candidate has nothing to say about its instance, so that each connection can have its own."""
    return is_sdk_agent(candidate.agent_class) and candidate.supplier is candidate.agent_class


def _declared_class(instance: Any) -> type:
    """The declared class of an instance, also when the instance is a proxy's."""
    kinds = type(instance).__mro__
    return next((kind for kind in kinds if declaration_of(kind) is not None), kinds[0])


def __getattr__(name: str) -> Any:
    if name in {"ClientBuilder", "build_client"}:
        # An agent's process needs nothing of the client, and starts without it.
        return getattr(import_module("acp_integration.client"), name)
    message = f"module {__name__!r} has no attribute {name!r}"
    raise AttributeError(message)
