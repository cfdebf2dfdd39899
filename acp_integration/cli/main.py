"""The command line that the core and both frameworks share."""

import argparse
import sys
from collections.abc import Sequence
from importlib import import_module
from typing import Any, Final, NoReturn

from acp_integration.cli.failure import say_failure
from acp_integration.cli.program import Program
from acp_integration.cli.surroundings import add_common_arguments, surroundings
from acp_integration.entry import EXIT_INTERRUPTED, EXIT_USAGE
from acp_integration.errors import AcpError
from acp_integration.transports.guard import StandardStreams

__all__ = ["EXIT_INTERRUPTED", "EXIT_USAGE", "main", "parser_for"]

_COMMANDS: Final = ("stdio", "ask", "chat", "inspect", "editor", "listen", "doctor")


def main(program: Program, arguments: Sequence[str], streams: StandardStreams | None = None) -> int:
    """Run one command; returns the exit code.

    Args:
        program: whose command line it is.
        arguments: the words behind the program's name.
        streams: standard input and output, if they were taken for the protocol already.
    """
    options = parser_for(program, arguments).parse_args(arguments)
    name = f"{program.name} {options.command}"
    try:
        with surroundings(options):
            code: int = options.run(program, options, streams)
    except AcpError as error:
        return say_failure(name, error)
    except KeyboardInterrupt:
        return EXIT_INTERRUPTED
    except SystemExit as ending:
        print(f"{name}: the target ended the process ({ending.code!r})", file=sys.stderr)
        raise
    return code


def parser_for(program: Program, arguments: Sequence[str] = ()) -> argparse.ArgumentParser:
    """The parser of a program's commands, or of the one the arguments name: editors wait for the start."""
    names = [name for name in _COMMANDS if name in arguments[:1]] or _COMMANDS
    parser = _Parser(
        prog=program.name,
        description="Serve and try an Agent Client Protocol agent.",
        epilog=f"example: {program.name} {_example(names[0] if len(names) == 1 else 'ask', program)}",
        allow_abbrev=False,
    )
    # Without a name of its own argparse would format the usage, to no use but for the time that takes.
    commands = parser.add_subparsers(prog=program.name, dest="command", required=True, metavar="COMMAND")
    for name in names:
        _add_command(commands, name, program)
    return parser


def _add_command(commands: Any, name: str, program: Program) -> None:
    module = import_module(f"acp_integration.cli.{name}")
    command = commands.add_parser(
        name,
        help=module.HELP,
        description=module.DESCRIPTION,
        epilog=f"example: {program.name} {_example(name, program)}",
        allow_abbrev=False,
    )
    add_common_arguments(command)
    module.add_arguments(command, program)
    command.set_defaults(run=module.run)


def _example(name: str, program: Program) -> str:
    example: str = import_module(f"acp_integration.cli.{name}").EXAMPLE
    return " ".join(example.format(target=program.example_target).split())


class _Parser(argparse.ArgumentParser):
    """Says in one line what is wrong with a command line, and where the help is."""

    def error(self, message: str) -> NoReturn:
        self.exit(EXIT_USAGE, f"{self.prog}: {message} (--help shows how)\n")
