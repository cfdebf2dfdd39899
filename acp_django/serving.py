"""The project's agent, put together once in each process, when it is first needed."""

from dataclasses import dataclass
from functools import cache
from typing import Any

from django.core.signals import setting_changed
from django.dispatch import receiver

from acp_django import conf
from acp_django.discovery import find_agent
from acp_django.executor import DjangoExecutor
from acp_django.signals import SignalObserver
from acp_integration.assembly import AgentBuilder, AgentFactory
from acp_integration.endpoint import AcpEndpoint
from acp_integration.session_guard import SessionGuard


@dataclass(frozen=True, slots=True)
class Serving:
    """What serves the agent in this process.

    Attributes:
        builder: what the agent was put together with.
        factory: makes a runtime of the agent for each connection.
        signals: tells the receivers of the project.
    """

    builder: AgentBuilder
    factory: AgentFactory
    signals: SignalObserver

    def make_endpoint(self) -> AcpEndpoint:
        """A new endpoint for the agent; it runs on the loop that first uses it."""
        return AcpEndpoint(self.factory, conf.endpoint_options())


@cache
def serving() -> Serving:
    """Put the agent together, or return what was put together before.

    Raises:
        ConfigurationError: if `settings.ACP`, the environment or a file holds what cannot be used.
        DiscoveryError: if there is not exactly one agent, or it is declared wrongly.
    """
    executor = DjangoExecutor(conf.runtime_options().sync_threads)
    agent = find_agent()
    signals = SignalObserver(agent.agent_class, executor)
    builder = AgentBuilder(
        agent,
        conf.agent_settings(),
        executor=executor,
        interceptors=[SessionGuard(permits, executor) for permits in conf.objects(conf.PERMISSION)],
        observers=[signals],
        plugins=conf.objects(conf.PLUGINS),
    )
    return Serving(builder, builder.build_factory(), signals)


@cache
def shared_endpoint() -> AcpEndpoint:
    """The endpoint of the plain view, for a project without the wrapper."""
    return serving().make_endpoint()


@receiver(setting_changed)
def _forget(*, setting: str, **_: Any) -> None:
    if setting in {"ACP", "BASE_DIR", "INSTALLED_APPS"}:
        serving.cache_clear()
        shared_endpoint.cache_clear()
