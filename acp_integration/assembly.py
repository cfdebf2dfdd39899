"""Putting an agent together: everything is read and checked here, once, for any number of connections."""

import inspect
from collections.abc import Callable
from typing import Any

from acp_integration.binding import BoundAgent, bind
from acp_integration.caller import LOCAL, Caller
from acp_integration.capabilities import Initialize
from acp_integration.defaults import NewSession
from acp_integration.execution import HandlerExecutor, ThreadExecutor, ThreadLimit
from acp_integration.options import RuntimeOptions
from acp_integration.runtime import AgentRuntime
from acp_integration.transports.transport import Transport
from acp_integration.wire import methods

AgentFactory = Callable[[Transport, Caller], AgentRuntime]


class AgentBuilder:
    """Builds the runtimes of one agent; every connection is served by the same instance."""

    def __init__(self, agent: Any, settings: Any = None, *, executor: HandlerExecutor | None = None) -> None:
        self._agent = agent
        self.options = RuntimeOptions() if settings is None else settings.runtime_options()
        self._executor = executor or ThreadExecutor(ThreadLimit(self.options.sync_threads))

    def build(self, transport: Transport, caller: Caller = LOCAL) -> AgentRuntime:
        """The runtime of the agent on one transport."""
        return AgentRuntime(self._bind(), transport, caller, self.options)

    def build_factory(self) -> AgentFactory:
        """What makes a fresh runtime for each connection; nothing is read or checked again."""
        bound, options = self._bind(), self.options

        def factory(transport: Transport, caller: Caller = LOCAL) -> AgentRuntime:
            return AgentRuntime(bound, transport, caller, options)

        return factory

    def _bind(self) -> BoundAgent:
        instance = self._agent() if inspect.isclass(self._agent) else self._agent
        declared = self._agent if inspect.isclass(self._agent) else type(self._agent)
        bound = bind(declared, instance, self._executor)
        bound.handlers.setdefault(methods.SESSION_NEW, NewSession())
        bound.handlers[methods.INITIALIZE] = Initialize(bound)
        return bound
