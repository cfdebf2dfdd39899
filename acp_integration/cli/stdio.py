"""`stdio TARGET`: serve the agent to the program that started this process."""

import argparse
from typing import Final

from acp_integration.cli.program import Program
from acp_integration.cli.serving import serve_stdio
from acp_integration.transports.guard import StandardStreams, guard_standard_streams

HELP: Final = "serve the agent on standard input and output, as editors start it"
DESCRIPTION: Final = (
    "Serve the agent on standard input and output. Standard output carries nothing but protocol frames; "
    "what the application prints lands on standard error. Ends when the client closes standard input."
)


def add_arguments(command: argparse.ArgumentParser, program: Program) -> None:
    """What the command takes."""
    program.add_arguments(command)


def run(program: Program, options: argparse.Namespace, streams: StandardStreams | None) -> int:
    """Serve until the client is gone."""
    return serve_stdio(streams or guard_standard_streams(), lambda: program.open(options), trace=options.trace)
