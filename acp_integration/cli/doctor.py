"""`doctor [CLIENT]`: start the agent that a client is configured for, and say what is wrong with it."""

import json
from argparse import ArgumentParser, Namespace
from dataclasses import asdict
from typing import Final

from acp_integration.cli.interruption import run_interruptibly
from acp_integration.cli.program import Program
from acp_integration.client.doctor import examine
from acp_integration.errors import ConfigurationError
from acp_integration.hosts.clients import DEFAULT, prefix_of
from acp_integration.settings import AcpClientSettings
from acp_integration.transports.guard import StandardStreams

HELP: Final = "start the agent that a client is configured for, and say what is wrong with it"
DESCRIPTION: Final = (
    "Start the agent of acp.client, or of the client that is named, one step after the other, and say what was found. "
    "Exits with 1 if a step failed."
)
EXAMPLE: Final = "doctor {target}"


def add_arguments(command: ArgumentParser, program: Program) -> None:
    """What the command takes."""
    program.add_client_arguments(command)
    command.add_argument("client", metavar="CLIENT", nargs="?", help="a name under acp.clients (default: acp.client)")
    command.add_argument("--prompt", metavar="TEXT", help="send this prompt, too: some agents want a login only then")
    command.add_argument("--json", action="store_true", help="print every finding as a line of JSON")


def run(program: Program, options: Namespace, streams: StandardStreams | None) -> int:  # noqa: ARG001  # one form for all
    """Examine the client's agent."""
    name = options.client or DEFAULT
    settings = _chosen(program, options, name)
    return run_interruptibly(lambda _: _examine(settings, prefix_of(name), options))


def _chosen(program: Program, options: Namespace, name: str) -> AcpClientSettings:
    clients = program.clients(options)
    if name == DEFAULT:
        return clients.get(name, AcpClientSettings())  # which says what to set
    if name not in clients:
        names = ", ".join(sorted(clients)) or "none"
        raise ConfigurationError(f"There is no client {name!r}; those configured: {names}")
    return clients[name]


async def _examine(settings: AcpClientSettings, prefix: str, options: Namespace) -> int:
    healthy = True
    async for finding in examine(settings, prefix, prompt=options.prompt):
        healthy = healthy and finding.ok
        print(json.dumps(asdict(finding)) if options.json else finding, flush=True)
    return 0 if healthy else 1
