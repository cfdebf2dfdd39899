"""An in-memory client of an agent: no process, no socket, the same runtime and the same client as in production."""

from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from typing import Any

from acp_integration.assembly import AgentBuilder
from acp_integration.client.builder import ClientBuilder, build_client
from acp_integration.client.client import AcpClient
from acp_integration.owned import OwnedTask
from acp_integration.transports.memory import memory_transport_pair


@asynccontextmanager
async def connect(
    agent: Any,
    *,
    settings: Any = None,
    client_settings: Any = None,
    customizers: Iterable[Callable[[ClientBuilder], object]] = (),
    **more: Any,
) -> AsyncIterator[AcpClient]:
    """Serve an agent in memory and give its client, initialized; both end with the block.

    Args:
        agent: an agent class, function or instance.
        settings: the agent's settings.
        client_settings: the client's settings.
        customizers: called with the client's builder, to add handlers.
        more: what else `AgentBuilder` takes.
    """
    client_end, agent_end = memory_transport_pair()
    runtime = AgentBuilder(agent, settings, **more).build(agent_end)
    client = build_client(client_end, client_settings, customizers)
    serving = OwnedTask("acp-agent-in-memory")
    serving.start(runtime.serve)
    try:
        async with client:
            yield client
    finally:
        runtime.stop()
        await serving.wait()
