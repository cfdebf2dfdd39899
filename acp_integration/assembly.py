"""Putting an agent together: everything is read and checked here, once, for any number of connections."""

import inspect
from collections.abc import Callable, Iterable
from typing import Any

from acp_integration.agents import declaration_of
from acp_integration.binding import ArgumentResolver, BoundAgent, HandlerScope, ReturnValueHandler, Surroundings, bind
from acp_integration.caller import LOCAL, Caller
from acp_integration.capabilities import Initialize
from acp_integration.declared import Declared, read_declaration
from acp_integration.defaults import EmptyAnswer
from acp_integration.discovery import AgentCandidate
from acp_integration.effects import EFFECTS
from acp_integration.errors import ConfigurationError, HandlerError
from acp_integration.execution import HandlerExecutor, ThreadExecutor, ThreadLimit
from acp_integration.interception import Chain
from acp_integration.options import RuntimeOptions
from acp_integration.runtime import AgentRuntime
from acp_integration.store import MemoryStore, SessionStore
from acp_integration.stored import add_stored_handlers
from acp_integration.transports.transport import Transport
from acp_integration.wire import methods

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
        store: SessionStore | None = None,
        scope: HandlerScope | None = None,
    ) -> None:
        self._agent = agent
        self.options = RuntimeOptions() if settings is None else settings.runtime_options()
        self._executor = executor or ThreadExecutor(ThreadLimit(self.options.sync_threads))
        self.interceptors = [*interceptors]
        self.argument_resolvers = [*argument_resolvers]
        self.return_value_handlers = [*return_value_handlers]
        self._store = store if store is not None or settings is None else _named_store(settings)
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

    def _bind(self) -> BoundAgent:
        agent, instance = _instance_of(self._agent)
        surroundings = Surroundings(
            executor=self._executor,
            resolvers=tuple(self.argument_resolvers),
            return_handlers=tuple(self.return_value_handlers),
            scope=self._scope,
        )
        bound = bind(agent, instance, surroundings)
        if self._store is not None:
            add_stored_handlers(bound, self._store)
        _complete(bound, read_declaration(bound.declaration), Chain(self.interceptors), self._store)
        return bound


def _named_store(settings: Any) -> SessionStore | None:
    name = settings.host_options().session_store
    if name == "none":
        return None
    if name == "memory:":
        return MemoryStore()
    raise ConfigurationError(f"acp.agent.session-store={name} is not available here: use none or memory:")


def _complete(bound: BoundAgent, declared: Declared, chain: Chain, store: SessionStore | None) -> None:
    """Add what an agent answers without a handler, put the interceptors around it, and the effects around those."""
    handlers = bound.handlers
    _check_modes(bound, declared)
    handlers.setdefault(methods.SESSION_NEW, EmptyAnswer(methods.SESSION_NEW))
    if declared.modes:
        handlers.setdefault(methods.SESSION_SET_MODE, EmptyAnswer(methods.SESSION_SET_MODE))
    if declared.config:
        handlers.setdefault(methods.SESSION_SET_CONFIG_OPTION, EmptyAnswer(methods.SESSION_SET_CONFIG_OPTION))
    own = [*handlers.values()]
    for method in EFFECTS.keys() & handlers.keys():
        handlers[method] = EFFECTS[method](handlers[method], declared, store)
    handlers[methods.INITIALIZE] = Initialize(bound, declared)
    if chain:
        for handler in (*own, handlers[methods.INITIALIZE]):
            handler.chain = chain


def _check_modes(bound: BoundAgent, declared: Declared) -> None:
    handlers, name = bound.handlers, bound.declaration.name
    if declared.agent_auth_methods and methods.AUTHENTICATE not in handlers:
        raise HandlerError(f"{name}: its auth_methods need an @on.authenticate method, unless their type is terminal")
    announced = methods.SESSION_NEW in handlers
    if methods.SESSION_SET_MODE in handlers and not announced and not declared.modes:
        fix = "give @acp_agent(modes=...), or return them from @on.new_session"
        raise HandlerError(f"{name}: @on.set_mode needs modes: {fix}")
    if methods.SESSION_SET_CONFIG_OPTION in handlers and not announced and not declared.config:
        fix = "give @acp_agent(config_options=...), or return them from @on.new_session"
        raise HandlerError(f"{name}: @on.set_config_option needs options: {fix}")


def _instance_of(agent: Any) -> tuple[Any, Any]:
    """The declared class or function, and what is served of it."""
    if isinstance(agent, AgentCandidate):
        return agent.agent_class, agent.instance
    if inspect.isfunction(agent):
        return agent, agent
    if not inspect.isclass(agent):
        return _declared_class(agent), agent
    try:
        return agent, agent()
    except Exception as error:
        name = f"{agent.__module__}.{agent.__qualname__}"
        problem = f"{name} cannot be made without arguments ({error!r}): pass an instance"
        raise HandlerError(problem, owner=name) from error


def _declared_class(instance: Any) -> type:
    """The declared class of an instance, also when the instance is a proxy's."""
    kinds = type(instance).__mro__
    return next((kind for kind in kinds if declaration_of(kind) is not None), kinds[0])
