"""The clients of a project: each drives one agent, is opened when first asked for, and serves the whole process."""

import asyncio
from typing import Any

from django.apps import apps
from django.core.signals import setting_changed
from django.dispatch import receiver

from acp_django import conf
from acp_integration.client.client import AcpClient
from acp_integration.client.sync import SyncAcpClient
from acp_integration.hosts.clients import DEFAULT, SharedClients
from acp_integration.hosts.process_clients import ProcessClients


def get_client(alias: str = DEFAULT) -> SyncAcpClient:
    """The client for sync code, connected; it blocks and has to be called from a thread that may wait.

    Args:
        alias: the name under ``clients`` in `settings.ACP`; the default is the one under ``client``.

    Raises:
        ConfigurationError: if nothing, or nothing usable, is set for that client.
        ClientError: if its agent cannot be reached.
    """
    return SyncAcpClient(_clients().opened(alias).result())


async def aget_client(alias: str = DEFAULT) -> AcpClient:
    """The same client, on the same connection, for async code."""
    return await asyncio.wrap_future(_clients().opened(alias))


def _clients() -> ProcessClients:
    app: Any = apps.get_app_config("acp_django")
    found: ProcessClients = vars(app).setdefault(
        "clients", ProcessClients(_load)
    )  # one call: many threads may come first
    return found


def _load() -> SharedClients:
    return SharedClients(conf.clients(), conf.objects(conf.CLIENT_CUSTOMIZERS))


@receiver(setting_changed)
def _forget(*, setting: str, **_: Any) -> None:
    if setting == "ACP":
        _clients().close()
