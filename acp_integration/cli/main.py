"""The command line that the core and both frameworks share."""

import argparse
import logging
import os
import sys
from collections.abc import Sequence
from importlib import import_module
from typing import Final

from acp_integration.cli.program import Program
from acp_integration.errors import AcpError
from acp_integration.transports.guard import StandardStreams

EXIT_USAGE: Final = 2
EXIT_INTERRUPTED: Final = 130
_COMMANDS: Final = ("stdio", "ask", "chat", "inspect", "editor", "listen")


def main(program: Program, arguments: Sequence[str], streams: StandardStreams | None = None) -> int:
    """Run one command; returns the exit code.

    Args:
        program: whose command line it is.
        arguments: the words behind the program's name.
        streams: standard input and output, if they were taken for the protocol already.
    """
    options = parser_for(program, arguments).parse_args(arguments)
    _set_up_logging(options)
    _set_up_path(options)
    try:
        code: int = options.run(program, options, streams)
    except AcpError as error:
        print(f"{program.name} {options.command}: {error}", file=sys.stderr)
        return EXIT_USAGE
    except KeyboardInterrupt:
        return EXIT_INTERRUPTED
    return code


def parser_for(program: Program, arguments: Sequence[str] = ()) -> argparse.ArgumentParser:
    """The parser of a program's commands, or of the one the arguments name: editors wait for the start."""
    parser = argparse.ArgumentParser(prog=program.name, description="Serve and try an Agent Client Protocol agent.")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    named = [name for name in _COMMANDS if name in arguments[:1]]
    for name in named or _COMMANDS:
        module = import_module(f"acp_integration.cli.{name}")
        command = commands.add_parser(name, help=module.HELP, description=module.DESCRIPTION)
        _add_common(command)
        module.add_arguments(command, program)
        command.set_defaults(run=module.run)
    return parser


def _add_common(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--app-dir", metavar="DIR", help="where the target is imported from (default: this directory, last)"
    )
    command.add_argument("--trace", metavar="FILE", help="append every frame to this file, secrets masked")
    command.add_argument("--log-level", default="warning", metavar="LEVEL", help="debug, info, warning or error")
    command.add_argument("--log-file", metavar="FILE", help="log to this file: editors hide standard error")


def _set_up_logging(options: argparse.Namespace) -> None:
    handler = logging.FileHandler(options.log_file) if options.log_file else logging.StreamHandler()
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s"))
    logger = logging.getLogger("acp_integration")
    logger.addHandler(handler)
    logger.setLevel(options.log_level.upper())


def _set_up_path(options: argparse.Namespace) -> None:
    """Import the target from where it lives; a folder that happens to be the current one never shadows a library."""
    here = os.getcwd()
    if not sys.flags.safe_path and sys.path and sys.path[0] in ("", here):
        del sys.path[0]
        if options.app_dir is None:
            sys.path.append(here)
    if options.app_dir is not None:
        sys.path.insert(0, os.path.abspath(options.app_dir))
