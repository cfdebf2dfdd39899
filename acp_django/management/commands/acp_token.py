"""`manage.py acp_token NAME`: a bearer token with which a program acts for a user."""

from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from acp_django.auth import BearerToken, user_named


class Command(BaseCommand):
    """Prints a token for `acp_django.auth.BearerToken`."""

    help = "Print a bearer token for a user; it ends with the user's password, or when it is too old"

    def add_arguments(self, parser: CommandParser) -> None:
        """Name the user."""
        parser.add_argument("name", help="whom the token stands for")

    def handle(self, *_: Any, **options: Any) -> None:
        """Print the token alone, so that a script can take it."""
        user = user_named(options["name"])
        if user is None:
            raise CommandError(f"There is no user {options['name']!r}")
        self.stdout.write(BearerToken.make(user))
