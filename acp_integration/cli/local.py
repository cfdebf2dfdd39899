"""A client of the served agent in this very process, for the commands in which a person talks to it."""

import os
from argparse import ArgumentParser, Namespace
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import anyio

from acp_integration.cli.interruption import Interruption
from acp_integration.cli.starting import Start
from acp_integration.cli.terminal import Terminal
from acp_integration.client.builder import ClientBuilder, build_client
from acp_integration.client.client import AcpClient
from acp_integration.client.session import ClientSession
from acp_integration.errors import ConfigurationError
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


@asynccontextmanager
async def conversation(start: Start, options: Namespace, terminal: Terminal) -> AsyncIterator[ClientSession]:
    """Start the agent, open a session, and end both.

    Raises:
        ConfigurationError: if the directory of the session is none.
    """
    cwd = os.path.abspath(Path(options.cwd or os.getcwd()).expanduser())
    if not Path(cwd).is_dir():
        raise ConfigurationError(f"--cwd {options.cwd} is not a directory")

    def customize(builder: ClientBuilder) -> None:
        builder.on_update(terminal.show)
        builder.on_permission(terminal.permit)

    async with _client(start, options, customize) as client:
        yield await client.new_session(cwd)


async def hold_turn(session: ClientSession, text: str, terminal: Terminal, interruption: Interruption) -> str:
    """Prompt, and return why the turn ended; the first signal cancels the turn and nothing else."""
    async with anyio.create_task_group() as tasks:
        with interruption.gently(lambda: tasks.start_soon(session.cancel)):
            result = await session.prompt(text)
    terminal.finish(result.stop_reason)
    return result.stop_reason


@asynccontextmanager
async def _client(
    start: Start, options: Namespace, customize: Callable[[ClientBuilder], None]
) -> AsyncIterator[AcpClient]:
    async with start.open() as served:
        client_end, agent_end = memory_transport_pair()
        transport: Transport = TracedTransport(client_end, options.trace) if options.trace else client_end
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(served.factory(agent_end, served.caller).serve)
            async with build_client(transport, customizers=[customize]) as client:
                await client.initialize()
                yield client
