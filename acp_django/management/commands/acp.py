"""`manage.py acp inspect|ask|chat|editor|doctor`: look at the project's agent, try it, connect an editor."""

import sys
from argparse import REMAINDER
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from acp_django.program import run


class Command(BaseCommand):
    """The core's commands, for the agent of this project."""

    help = "Inspect and try the project's agent: inspect, ask, chat, editor, doctor"
    requires_system_checks = ()

    def run_from_argv(self, argv: list[str]) -> None:
        """The core's parser reads the command line."""
        sys.exit(run(f"{argv[0]} acp", argv[2:]))

    def add_arguments(self, parser: CommandParser) -> None:
        """For `call_command`."""
        parser.add_argument("arguments", nargs=REMAINDER)

    def handle(self, *args: Any, **options: Any) -> None:
        """For `call_command`."""
        code = run("acp", [*args, *options["arguments"]])
        if code:
            raise CommandError("The command failed", returncode=code)
