"""`manage.py acp inspect|ask|chat|editor|doctor`: look at the project's agent, try it, connect an editor."""

import sys
from argparse import REMAINDER
from typing import Any, ClassVar

from django.apps import apps
from django.core.management.base import BaseCommand, CommandError, CommandParser

from acp_django.program import run


class Command(BaseCommand):
    """The core's commands, for the agent of this project.

    Attributes:
        words: what stands in front of the words of the command line.
    """

    help = "Inspect and try the project's agent, connect an editor to it"
    requires_system_checks = ()
    words: ClassVar[tuple[str, ...]] = ()

    def run_from_argv(self, argv: list[str]) -> None:
        """The core's parser reads the command line."""
        app: Any = apps.get_app_config("acp_django")
        sys.exit(run(f"{argv[0]} acp", [*self.words, *argv[2:]], app.streams))

    def add_arguments(self, parser: CommandParser) -> None:
        """For `call_command`."""
        parser.add_argument("arguments", nargs=REMAINDER)

    def handle(self, *args: Any, **options: Any) -> None:
        """For `call_command`; serving on standard input has to be the last thing that a process does."""
        if code := run("acp", [*self.words, *args, *options["arguments"]]):
            raise CommandError("The command failed", returncode=code)
