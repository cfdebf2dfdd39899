"""`manage.py acp_stdio`: serve the project's agent on standard input and output."""

from acp_django.management.commands import acp


class Command(acp.Command):
    """Nothing but frames is written to standard output."""

    help = "Serve the project's agent on standard input and output, as editors start it"
    words = ("stdio",)
