"""The site's agent: it opens, answers and closes tickets. Its handler is plain sync code that uses the ORM."""

import time
from collections.abc import Callable

from django.db import transaction

from acp_integration import SyncPromptContext, acp_agent, on
from helpdesk.models import Ticket

HELP = """I look after the tickets of this site:
- list
- open TITLE
- answer NUMBER TEXT
- close NUMBER (I ask for permission first)
- watch (I report changes until you cancel)
"""


@acp_agent(name="helpdesk", title="Help desk", version="1.0.0")
class HelpDesk:
    @on.prompt
    def reply(self, turn: SyncPromptContext) -> str:
        verb, _, rest = turn.text.strip().partition(" ")
        return COMMANDS.get(verb.lower(), show_help)(turn, rest.strip())


def show_help(turn: SyncPromptContext, text: str) -> str:
    return HELP


def list_tickets(turn: SyncPromptContext, text: str) -> str:
    for ticket in Ticket.objects.all():
        turn.send_message(f"{ticket}\n")
    return f"{Ticket.objects.filter(closed=False).count()} not closed"


def open_ticket(turn: SyncPromptContext, title: str) -> str:
    if not title:
        return "What is the ticket about? Say: open TITLE"
    with turn.tool_call(f"Open a ticket: {title}", kind="edit"):
        ticket = Ticket.objects.create(title=title, opened_by=turn.user)
    return f"Opened {ticket}"


def answer_ticket(turn: SyncPromptContext, text: str) -> str:
    number, _, answer = text.partition(" ")
    with transaction.atomic():
        ticket = find(number)
        if ticket is None:
            return f"There is no ticket {number}"
        ticket.answer = answer
        ticket.save()
    return f"Answered {ticket}"


def close_ticket(turn: SyncPromptContext, number: str) -> str:
    ticket = find(number)
    if ticket is None:
        return f"There is no ticket {number}"
    if not turn.ask_permission(f"Close {ticket}", kind="edit"):
        return f"Kept {ticket}"
    Ticket.objects.filter(pk=ticket.pk).update(closed=True)
    return f"Closed #{ticket.pk}"


def watch(turn: SyncPromptContext, text: str) -> str:
    turn.send_message("Watching the tickets, cancel to stop\n")
    known = set(map(str, Ticket.objects.all()))
    while not turn.is_cancelled:
        now = set(map(str, Ticket.objects.all()))
        for change in sorted(now - known):
            turn.send_message(f"{change}\n")
        known = now
        time.sleep(1)
    return "Stopped"


def find(number: str) -> Ticket | None:
    return Ticket.objects.filter(pk=int(number)).first() if number.isdecimal() else None


COMMANDS: dict[str, Callable[[SyncPromptContext, str], str]] = {
    "list": list_tickets,
    "open": open_ticket,
    "answer": answer_ticket,
    "close": close_ticket,
    "watch": watch,
}
