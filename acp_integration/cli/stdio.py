"""`stdio TARGET`: serve the agent to the program that started this process."""

import argparse
from typing import Final

from acp_integration.cli.program import Program
from acp_integration.cli.reloaders import refuse_autoreloader
from acp_integration.cli.serving import serve_stdio
from acp_integration.cli.starting import Start
from acp_integration.transports.guard import StandardStreams, guard_standard_streams

HELP: Final = "serve the agent on standard input and output, as editors start it"
DESCRIPTION: Final = (
    "Serve the agent on standard input and output. Standard output carries nothing but protocol frames; "
    "what the application prints lands on standard error. Ends when the client closes standard input."
)
EXAMPLE: Final = "stdio {target} --trace /tmp/frames.txt"


def add_arguments(command: argparse.ArgumentParser, program: Program) -> None:
    """What the command takes."""
    program.add_arguments(command)


def run(program: Program, options: argparse.Namespace, streams: StandardStreams | None) -> int:
    """Serve until the client is gone."""
    taken = streams or guard_standard_streams()
    refuse_autoreloader()
    return serve_stdio(taken, Start(program, options).load().open, trace=options.trace)
