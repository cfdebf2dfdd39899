"""The clients of a project: each drives one agent, is opened when first asked for, and serves the whole process."""

import atexit
import os
from functools import cache
from typing import Any, Final

from asgiref.sync import sync_to_async
from django.core.signals import setting_changed
from django.dispatch import receiver

from acp_django import conf
from acp_integration.client.builder import build_client
from acp_integration.client.client import AcpClient
from acp_integration.client.pool import ClientPool
from acp_integration.client.sync import SyncAcpClient
from acp_integration.errors import ConfigurationError
from acp_integration.transports.selection import select_client_transport

DEFAULT: Final = "default"


def get_client(alias: str = DEFAULT) -> SyncAcpClient:
    """The client for sync code, connected; it blocks and has to be called from a thread that may wait.

    Args:
        alias: the name under ``clients`` in `settings.ACP`; the default is the one under ``client``.

    Raises:
        ConfigurationError: if nothing, or nothing usable, is set for that client.
        ClientError: if its agent cannot be reached.
    """
    return _of_process(os.getpid()).opened(alias)


async def aget_client(alias: str = DEFAULT) -> AcpClient:
    """The same client, on the same connection, for async code."""
    opened = await sync_to_async(get_client, thread_sensitive=False)(alias)
    return opened.async_client


@cache
def _of_process(_: int) -> ClientPool:
    """Kept by the id of the process: after a fork, the pipes and threads of the parent are not the child's."""
    pool = ClientPool(_built)
    atexit.register(pool.close)
    return pool


def _built(alias: str) -> AcpClient:
    prefix = "acp.client" if alias == DEFAULT else f"acp.clients.{alias}"
    settings = conf.client_settings(alias if alias != DEFAULT else None)
    transport = None if settings is None else select_client_transport(settings, prefix)
    if transport is None:
        raise ConfigurationError(f"There is no client {alias!r}: set {prefix}.transport.* in settings.ACP")
    return build_client(transport, settings, conf.objects(conf.CLIENT_CUSTOMIZERS), prefix=prefix)


@receiver(setting_changed)
def _forget(*, setting: str, **_: Any) -> None:
    if setting == "ACP":
        _of_process(os.getpid()).close()
