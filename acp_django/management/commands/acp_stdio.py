"""`manage.py acp_stdio`: serve the project's agent on standard input and output."""

import sys
from argparse import REMAINDER
from typing import Any

from django.apps import apps
from django.core.management.base import BaseCommand, CommandParser

from acp_django.program import run
from acp_integration.transports.guard import guard_standard_streams


class Command(BaseCommand):
    """Takes the descriptors first; nothing but frames is written to standard output from then on."""

    help = "Serve the project's agent on standard input and output, as editors start it"
    requires_system_checks = ()

    def run_from_argv(self, argv: list[str]) -> None:
        """The core's parser reads the command line, so that both commands take the same options."""
        app: Any = apps.get_app_config("acp_django")
        sys.exit(run(f"{argv[0]} acp", ["stdio", *argv[2:]], app.streams))

    def add_arguments(self, parser: CommandParser) -> None:
        """For `call_command`."""
        parser.add_argument("arguments", nargs=REMAINDER)

    def handle(self, *args: Any, **options: Any) -> None:
        """For `call_command`, which has to be the last thing that its process does."""
        sys.exit(run("acp", ["stdio", *args, *options["arguments"]], guard_standard_streams()))
