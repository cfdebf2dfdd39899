"""Receivers of signals, connected when the agent is put together."""

from types import SimpleNamespace

from django.dispatch import receiver

from acp_django.signals import connection_closed
from tickets.models import Ticket

plugin = SimpleNamespace()


@receiver(connection_closed)
def write_down(**_):
    Ticket.objects.create(title="connection closed")
