"""The clients of a project: each drives one agent, is opened when first asked for, and serves the whole process."""

import asyncio
import atexit
import os
import threading
from concurrent.futures import Future
from contextlib import ExitStack
from typing import Any

from anyio.from_thread import BlockingPortal, start_blocking_portal
from django.apps import apps
from django.core.signals import setting_changed
from django.dispatch import receiver

from acp_django import conf
from acp_integration.client.client import AcpClient
from acp_integration.client.sync import SyncAcpClient
from acp_integration.errors import ConfigurationError
from acp_integration.hosts.clients import DEFAULT, SharedClients, client_settings, prefix_of


def get_client(alias: str = DEFAULT) -> SyncAcpClient:
    """The client for sync code, connected; it blocks and has to be called from a thread that may wait.

    Args:
        alias: the name under ``clients`` in `settings.ACP`; the default is the one under ``client``.

    Raises:
        ConfigurationError: if nothing, or nothing usable, is set for that client.
        ClientError: if its agent cannot be reached.
    """
    return SyncAcpClient(_here().opened(alias).result())


async def aget_client(alias: str = DEFAULT) -> AcpClient:
    """The same client, on the same connection, for async code."""
    return await asyncio.wrap_future(_here().opened(alias))


class _Clients:
    """The clients of one process, on a loop in a thread of their own."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._shared: SharedClients | None = None
        self._portal: BlockingPortal | None = None
        self._stack = ExitStack()

    def opened(self, alias: str) -> Future[AcpClient]:
        with self._lock:
            if self._portal is None or self._shared is None:
                settings = client_settings(conf.core_mapping(), files=conf.project_files())
                self._shared = SharedClients(settings, conf.objects(conf.CLIENT_CUSTOMIZERS))
                self._portal = self._stack.enter_context(start_blocking_portal(name="acp-clients"))
                self._stack.callback(self._portal.call, self._shared.aclose)
                atexit.register(self.close)
            if alias not in self._shared:
                raise ConfigurationError(f"There is no client {alias!r}: set {prefix_of(alias)}.transport.*")
            return self._portal.start_task_soon(self._shared.opened, alias)

    def close(self) -> None:
        with self._lock:
            self._portal = None
            self._stack.close()


def _here() -> _Clients:
    """Kept by the id of the process: after a fork, the pipes and threads of the parent are not the child's."""
    app: Any = apps.get_app_config("acp_django")
    found: _Clients = app.clients.setdefault(os.getpid(), _Clients())
    return found


@receiver(setting_changed)
def _forget(*, setting: str, **_: Any) -> None:
    if setting == "ACP":
        _here().close()
