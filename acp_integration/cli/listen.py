"""`listen TARGET`: serve the agent on a port of its own, over HTTP and WebSocket."""

import sys
from argparse import ArgumentParser, Namespace
from dataclasses import replace
from typing import Final

import anyio

from acp_integration.cli.interruption import run_interruptibly
from acp_integration.cli.program import Program, Served
from acp_integration.endpoint import AcpEndpoint
from acp_integration.hosts.listener import AcpListenerHost
from acp_integration.options import EndpointOptions, ListenerOptions
from acp_integration.transports.guard import StandardStreams

HELP: Final = "serve the agent over HTTP and WebSocket on a port of its own"
DESCRIPTION: Final = (
    "Serve the agent over Streamable HTTP and WebSocket with a server of its own, on this machine only unless a host "
    "is named. An application that has a server already serves its agent there and needs no such command."
)


def add_arguments(command: ArgumentParser, program: Program) -> None:
    """What the command takes."""
    program.add_arguments(command)
    command.add_argument("--host", metavar="ADDRESS", help="address to bind (default: loopback only)")
    command.add_argument("--port", metavar="PORT", type=int, help="port to bind, 0 for any free one (default: 8080)")


def run(program: Program, options: Namespace, streams: StandardStreams | None) -> int:  # noqa: ARG001  # one form for all
    """Serve until it is interrupted."""
    return run_interruptibly(_listen, program, options)


async def _listen(program: Program, options: Namespace) -> int:
    async with program.open(options) as served:
        endpoint_options, listener_options = _options(served, options)
        host = AcpListenerHost(AcpEndpoint(served.factory, endpoint_options), listener_options)
        async with host:
            print(f"Serving on port {host.port()} at {endpoint_options.path}", file=sys.stderr, flush=True)
            await anyio.sleep_forever()
    return 0


def _options(served: Served, options: Namespace) -> tuple[EndpointOptions, ListenerOptions]:
    if served.settings is None:
        endpoint, listener = EndpointOptions(), ListenerOptions()
    else:
        endpoint, listener = served.settings.endpoint_options(), served.settings.listener_options()
    if options.host is not None:
        listener = replace(listener, host=options.host)
    return endpoint, listener if options.port is None else replace(listener, port=options.port)
