"""A client of the served agent in this very process, for the commands in which a person talks to it."""

import os
from argparse import ArgumentParser, Namespace
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import anyio

from acp_integration.cli.program import Program
from acp_integration.cli.terminal import Terminal
from acp_integration.client.builder import ClientBuilder, build_client
from acp_integration.client.client import AcpClient
from acp_integration.client.session import ClientSession
from acp_integration.transports.memory import memory_transport_pair
from acp_integration.transports.trace import TracedTransport
from acp_integration.transports.transport import Transport


def add_conversation_arguments(command: ArgumentParser) -> None:
    """What every command takes in which a person talks to an agent."""
    command.add_argument("--cwd", metavar="DIR", help="directory the session works in (default: this one)")
    command.add_argument("--json", action="store_true", help="print every update and the result as a line of JSON")
    answer = command.add_mutually_exclusive_group()
    answer.add_argument("--approve-all", action="store_true", help="allow whatever the agent asks permission for")
    answer.add_argument("--deny-all", action="store_true", help="refuse whatever the agent asks permission for")


@dataclass(frozen=True, slots=True)
class Conversation:
    """A session of the served agent."""

    client: AcpClient
    session: ClientSession


@asynccontextmanager
async def conversation(program: Program, options: Namespace, terminal: Terminal) -> AsyncIterator[Conversation]:
    """Start the agent, open a session, and end both."""

    def customize(builder: ClientBuilder) -> None:
        builder.on_update(terminal.show)
        builder.on_permission(terminal.permit)

    async with local_client(program, options, customize) as client:
        cwd = os.path.abspath(options.cwd or os.getcwd())
        yield Conversation(client, await client.new_session(cwd))


@asynccontextmanager
async def local_client(
    program: Program, options: Namespace, customize: Callable[[ClientBuilder], None]
) -> AsyncIterator[AcpClient]:
    """Start the agent and connect to it in memory."""
    async with program.open(options) as served:
        client_end, agent_end = memory_transport_pair()
        transport: Transport = TracedTransport(client_end, options.trace) if options.trace else client_end
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(served.factory(agent_end, served.caller).serve)
            client: Any = build_client(transport, customizers=[customize])
            async with client:
                await client.initialize()
                yield client
