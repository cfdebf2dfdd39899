"""`ask TARGET TEXT`: one turn with the agent in the terminal."""

from argparse import ArgumentParser, Namespace
from typing import Final

from acp_integration.cli.interruption import run_interruptibly
from acp_integration.cli.local import add_conversation_arguments, conversation
from acp_integration.cli.program import Program
from acp_integration.cli.terminal import Terminal
from acp_integration.transports.guard import StandardStreams

HELP: Final = "hold one turn with the agent in the terminal"
DESCRIPTION: Final = (
    "Start the agent, send it one prompt, show its updates as they stream, and end. "
    "Ctrl-C cancels the turn. Exits with 0 when the turn ended by itself."
)


def add_arguments(command: ArgumentParser, program: Program) -> None:
    """What the command takes."""
    program.add_arguments(command)
    command.add_argument("text", metavar="TEXT", help="what to say to the agent")
    add_conversation_arguments(command)


def run(program: Program, options: Namespace, streams: StandardStreams | None) -> int:  # noqa: ARG001  # one form for all
    """Hold one turn."""
    return run_interruptibly(_ask, program, options)


async def _ask(program: Program, options: Namespace) -> int:
    terminal = Terminal(options)
    async with conversation(program, options, terminal) as talk:
        result = await talk.session.prompt(options.text)
        terminal.finish(result.stop_reason)
    return 0 if result.stop_reason == "end_turn" else 1
