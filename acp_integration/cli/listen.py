"""`listen TARGET`: serve the agent on a port of its own, over HTTP and WebSocket."""

import errno
import signal
import sys
from argparse import ArgumentParser, Namespace
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

import anyio
import msgspec

from acp_integration.assembly import AgentFactory
from acp_integration.cli.interruption import Interruption, run_interruptibly
from acp_integration.cli.program import Program, Served
from acp_integration.cli.starting import Start
from acp_integration.endpoint import AcpEndpoint
from acp_integration.entry import EXIT_INTERRUPTED
from acp_integration.errors import ConfigurationError
from acp_integration.hosts.listener import AcpListenerHost
from acp_integration.options import EndpointOptions, ListenerOptions
from acp_integration.transports.guard import StandardStreams
from acp_integration.transports.trace import TracedTransport

HELP: Final = "serve the agent over HTTP and WebSocket on a port of its own"
DESCRIPTION: Final = (
    "Serve the agent over Streamable HTTP and WebSocket with a server of its own, on this machine only unless a host "
    "is named. An application that has a server already serves its agent there and needs no such command."
)
EXAMPLE: Final = "listen {target} --port 8080"


def add_arguments(command: ArgumentParser, program: Program) -> None:
    """What the command takes."""
    program.add_arguments(command)
    command.add_argument("--host", metavar="ADDRESS", help="address to bind (default: loopback only)")
    command.add_argument("--port", metavar="PORT", type=int, help="port to bind, 0 for any free one (default: 8080)")


def run(program: Program, options: Namespace, streams: StandardStreams | None) -> int:  # noqa: ARG001  # one form for all
    """Serve until it is interrupted."""
    start = Start(program, options).load()
    return run_interruptibly(lambda interruption: _listen(start, options, interruption))


async def _listen(start: Start, options: Namespace, interruption: Interruption) -> int:
    async with start.open() as served:
        endpoint, listener = _options(served, options)
        host = AcpListenerHost(AcpEndpoint(_traced(served.factory, options.trace), endpoint), listener)
        stopping = anyio.Event()
        # The first signal lets turns end, the second does not.
        with interruption.gently(stopping.set):
            async with _started(host, listener):
                print(_where(host, endpoint, listener), file=sys.stderr, flush=True)
                await stopping.wait()
    return EXIT_INTERRUPTED if interruption.signal is signal.SIGINT else 0


@asynccontextmanager
async def _started(host: AcpListenerHost, listener: ListenerOptions) -> AsyncIterator[None]:
    try:
        await host.start()
    except OSError as error:
        place = f"{listener.host or 'the loopback addresses'}, port {listener.port}"
        fix = "; --port takes another, and 0 any free one" if error.errno == errno.EADDRINUSE else ""
        raise ConfigurationError(f"Cannot listen on {place}: {error.strerror or error}{fix}") from error
    async with host:
        yield


def _where(host: AcpListenerHost, endpoint: EndpointOptions, listener: ListenerOptions) -> str:
    name = listener.host or "127.0.0.1"
    shown = f"[{name}]" if ":" in name else name
    return f"Serving at http://{shown}:{host.port()}{endpoint.path}, and as a WebSocket there"


def _traced(factory: AgentFactory, trace: str | None) -> AgentFactory:
    if trace is None:
        return factory
    return lambda transport, caller: factory(TracedTransport(transport, trace), caller)


def _options(served: Served, options: Namespace) -> tuple[EndpointOptions, ListenerOptions]:
    if served.settings is None:
        endpoint, listener = EndpointOptions(), ListenerOptions()
    else:
        endpoint, listener = served.settings.endpoint_options(), served.settings.listener_options()
    if options.host is not None:
        listener = msgspec.structs.replace(listener, host=options.host)
    return endpoint, listener if options.port is None else msgspec.structs.replace(listener, port=options.port)
