"""The project's agent, put together once in each process, when it is first needed."""

from functools import cache, cached_property
from typing import TYPE_CHECKING, Any

from django.core.signals import setting_changed
from django.dispatch import receiver

from acp_django import conf
from acp_django.discovery import find_agent
from acp_django.executor import DjangoExecutor
from acp_django.sessions.store import STORE_NAME, django_store
from acp_django.signals import SignalObserver
from acp_integration.assembly import AgentBuilder
from acp_integration.options import RuntimeOptions
from acp_integration.session_guard import SessionGuard

if TYPE_CHECKING:
    from acp_integration.endpoint import AcpEndpoint


class Serving:
    """What serves the agent in this process.

    Attributes:
        builder: what the agent was put together with.
        factory: makes a runtime of the agent for each connection.
        signals: tells the receivers of the project.

    Raises:
        ConfigurationError: if `settings.ACP`, the environment or a file holds what cannot be used.
        DiscoveryError: if there is not exactly one agent, or it is declared wrongly.
    """

    def __init__(self) -> None:
        agent, settings = find_agent(), conf.agent_settings()
        self._settings = settings
        executor = DjangoExecutor((settings.runtime_options() if settings else RuntimeOptions()).sync_threads)
        self.signals = SignalObserver(agent.agent_class, executor)
        self.builder = AgentBuilder(
            agent,
            settings,
            executor=executor,
            interceptors=[SessionGuard(permits, executor) for permits in conf.objects(conf.PERMISSION)],
            observers=[self.signals],
            plugins=conf.objects(conf.PLUGINS),
            store=django_store() if conf.host_options().session_store == STORE_NAME else None,
        )
        self.factory = self.builder.build_factory()

    @cached_property
    def endpoint(self) -> "AcpEndpoint":
        """Serves the agent over HTTP and WebSocket, on the loop that first uses it."""
        from acp_integration.endpoint import AcpEndpoint  # noqa: PLC0415  # stdio does not wait for it

        return AcpEndpoint(self.factory, settings=self._settings)


serving = cache(Serving)


@receiver(setting_changed)
def _forget(*, setting: str, **_: Any) -> None:
    if setting in {"ACP", "BASE_DIR", "INSTALLED_APPS"}:
        serving.cache_clear()
