"""A client on a scripted agent, which every test of the client starts from."""

from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack
from typing import Any

import pytest

from acp_integration.client.builder import build_client
from acp_integration.client.client import AcpClient
from acp_integration.options import ClientOptions
from acp_integration.testing import MockAgent


class Capabilities:
    """Flags as the settings have them; what is not named is not set."""

    def __init__(self, *names: str) -> None:
        for name in names:
            setattr(self, name, True)


class Settings:
    """Client settings of a test."""

    def __init__(self, *capabilities: str, **options: Any) -> None:
        self.capabilities = Capabilities(*capabilities)
        self._options = ClientOptions(**options)

    def client_options(self) -> ClientOptions:
        return self._options


@pytest.fixture
def make_settings() -> Callable[..., Settings]:
    """``make_settings("terminal", request_timeout=1)``: capabilities switched on, and options."""
    return Settings


@pytest.fixture
async def agent() -> AsyncIterator[MockAgent]:
    """A scripted agent in memory."""
    async with MockAgent() as mock:
        yield mock


@pytest.fixture
async def opened(agent: MockAgent) -> AsyncIterator[Callable[..., Any]]:
    """``await opened(*customizers, settings=None)``: an initialized client of the scripted agent, closed at the end."""
    async with AsyncExitStack() as stack:

        async def open_client(*customizers: Any, settings: Any = None) -> AcpClient:
            return await stack.enter_async_context(build_client(agent.transport, settings, customizers))

        yield open_client


@pytest.fixture
async def client(opened: Callable[..., Any]) -> AcpClient:
    """An initialized client without handlers of its own."""
    return await opened()
