"""`chat TARGET`: a conversation with the agent in the terminal."""

from argparse import ArgumentParser, Namespace
from typing import Final

from acp_integration.cli.interruption import Interruption, run_interruptibly
from acp_integration.cli.local import add_conversation_arguments, conversation, hold_turn
from acp_integration.cli.program import Program
from acp_integration.cli.starting import Start
from acp_integration.cli.terminal import Terminal
from acp_integration.errors import PeerError
from acp_integration.transports.guard import StandardStreams

HELP: Final = "hold a conversation with the agent in the terminal"
DESCRIPTION: Final = (
    "Start the agent and talk to it, a line at a time, in one session; it asks for permission here. Ctrl-C cancels the "
    "turn; between turns it ends the conversation, as does an empty line or the end of input."
)
EXAMPLE: Final = "chat {target} --cwd ~/some/project"


def add_arguments(command: ArgumentParser, program: Program) -> None:
    """What the command takes."""
    program.add_arguments(command)
    add_conversation_arguments(command)


def run(program: Program, options: Namespace, streams: StandardStreams | None) -> int:  # noqa: ARG001  # one form for all
    """Talk until the person has had enough."""
    start = Start(program, options).load()
    return run_interruptibly(lambda interruption: _chat(start, options, interruption))


async def _chat(start: Start, options: Namespace, interruption: Interruption) -> int:
    terminal = Terminal(options)
    async with conversation(start, options, terminal) as session:
        while line := await terminal.read():
            try:
                await hold_turn(session, line, terminal, interruption)
            except* PeerError as failed:
                terminal.complain(f"The agent failed: {failed.exceptions[0]}")
    return 0
