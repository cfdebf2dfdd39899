"""The project's agent, put together once in each process, when it is first needed."""

from functools import cache
from typing import Any

from django.core.signals import setting_changed
from django.dispatch import receiver

from acp_django import conf
from acp_django.discovery import find_agent
from acp_django.executor import DjangoExecutor
from acp_django.permission import Permission
from acp_integration.assembly import AgentBuilder, AgentFactory
from acp_integration.endpoint import AcpEndpoint


@cache
def agent_factory() -> AgentFactory:
    """What makes a runtime of the agent for each connection.

    Raises:
        ConfigurationError: if `settings.ACP`, the environment or a file holds what cannot be used.
        DiscoveryError: if there is not exactly one agent, or it is declared wrongly.
    """
    executor = DjangoExecutor(conf.runtime_options().sync_threads)
    permissions = [Permission(permits, executor) for permits in conf.objects(conf.PERMISSION)]
    builder = AgentBuilder(find_agent(), conf.agent_settings(), executor=executor, interceptors=permissions)
    return builder.build_factory()


def make_endpoint() -> AcpEndpoint:
    """A new endpoint for the agent; it runs on the loop that first uses it."""
    return AcpEndpoint(agent_factory(), conf.endpoint_options())


@cache
def shared_endpoint() -> AcpEndpoint:
    """The endpoint of the plain view, for a project without the wrapper."""
    return make_endpoint()


@receiver(setting_changed)
def _forget(*, setting: str, **_: Any) -> None:
    if setting in {"ACP", "BASE_DIR", "INSTALLED_APPS"}:
        agent_factory.cache_clear()
        shared_endpoint.cache_clear()
