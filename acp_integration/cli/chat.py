"""`chat TARGET`: a conversation with the agent in the terminal."""

import sys
from argparse import ArgumentParser, Namespace
from typing import Final

import anyio.to_thread

from acp_integration.cli.interruption import run_interruptibly
from acp_integration.cli.local import add_conversation_arguments, conversation
from acp_integration.cli.program import Program
from acp_integration.cli.terminal import Terminal
from acp_integration.transports.guard import StandardStreams

HELP: Final = "hold a conversation with the agent in the terminal"
DESCRIPTION: Final = (
    "Start the agent and talk to it, a line at a time, in one session; it asks for permission here. "
    "An empty line or the end of input ends the conversation."
)


def add_arguments(command: ArgumentParser, program: Program) -> None:
    """What the command takes."""
    program.add_arguments(command)
    add_conversation_arguments(command)


def run(program: Program, options: Namespace, streams: StandardStreams | None) -> int:  # noqa: ARG001  # one form for all
    """Talk until the person has had enough."""
    return run_interruptibly(_chat, program, options)


async def _chat(program: Program, options: Namespace) -> int:
    terminal = Terminal(options)
    async with conversation(program, options, terminal) as talk:
        while line := await anyio.to_thread.run_sync(_read_line, abandon_on_cancel=True):
            result = await talk.session.prompt(line)
            terminal.finish(result.stop_reason)
    return 0


def _read_line() -> str:
    if sys.stdin.isatty():
        print("> ", end="", file=sys.stderr, flush=True)
    return sys.stdin.readline().strip()
