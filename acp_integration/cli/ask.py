"""`ask TARGET TEXT`: one turn with the agent in the terminal."""

from argparse import ArgumentParser, Namespace
from typing import Final

from acp_integration.cli.interruption import Interruption, run_interruptibly
from acp_integration.cli.local import add_conversation_arguments, conversation, hold_turn
from acp_integration.cli.program import Program
from acp_integration.cli.starting import Start
from acp_integration.cli.terminal import Terminal
from acp_integration.entry import EXIT_INTERRUPTED
from acp_integration.transports.guard import StandardStreams

HELP: Final = "hold one turn with the agent in the terminal"
DESCRIPTION: Final = (
    "Start the agent, send it one prompt, show its updates as they stream, and end. Ctrl-C cancels the turn, a second "
    "one ends at once. Exits with 0 if the turn ended by itself, 1 if it did not, 130 if it was interrupted."
)
EXAMPLE: Final = 'ask {target} "What can you do?"'


def add_arguments(command: ArgumentParser, program: Program) -> None:
    """What the command takes."""
    program.add_arguments(command)
    command.add_argument("text", metavar="TEXT", help="what to say to the agent")
    add_conversation_arguments(command)


def run(program: Program, options: Namespace, streams: StandardStreams | None) -> int:  # noqa: ARG001  # one form for all
    """Hold one turn."""
    start = Start(program, options).load()
    return run_interruptibly(lambda interruption: _ask(start, options, interruption))


async def _ask(start: Start, options: Namespace, interruption: Interruption) -> int:
    terminal = Terminal(options)
    async with conversation(start, options, terminal) as session:
        stop_reason = await hold_turn(session, options.text, terminal, interruption)
    if interruption.signal is not None:
        return EXIT_INTERRUPTED
    return 0 if stop_reason == "end_turn" else 1
