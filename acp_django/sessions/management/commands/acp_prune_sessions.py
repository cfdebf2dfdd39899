"""Retention: forgets sessions that nobody used for a while."""

from argparse import ArgumentParser
from datetime import timedelta
from typing import Any, Final

from django.core.management.base import BaseCommand, CommandError
from django.utils import timezone

from acp_django.sessions.models import Session

BATCH: Final = 500


class Command(BaseCommand):
    """Deletes sessions with their transcripts; run it from a timer."""

    help = "Deletes the agent sessions that did not change for so many days, with all that was said in them."

    def add_arguments(self, parser: ArgumentParser) -> None:
        """What to delete, and of whom."""
        parser.add_argument("--days", type=int, required=True, help="delete what did not change for so many days")
        parser.add_argument("--owner", metavar="PRINCIPAL", help="only the sessions of one principal")
        parser.add_argument("--dry-run", action="store_true", help="only say how many there are")

    def handle(self, *args: Any, **options: Any) -> None:  # noqa: ARG002  # Django's signature
        """Delete in batches, so that no transaction is long."""
        if options["days"] < 0:
            raise CommandError("--days cannot be negative")
        old = Session.objects.filter(updated_at__lt=timezone.now() - timedelta(days=options["days"]), turn=False)
        if options["owner"] is not None:
            old = old.filter(owner=options["owner"])
        count = old.count()
        if options["dry_run"]:
            self.stdout.write(f"{count} sessions would be deleted")
            return
        while ids := list(old.values_list("id", flat=True)[:BATCH]):
            old.filter(id__in=ids).delete()
        self.stdout.write(f"{count} sessions deleted")
