"""An agent whose prompt text chooses what it does, all of it sync code that uses the ORM."""

import ctypes
import logging
import os
import subprocess
import sys
import time

from asgiref.sync import async_to_sync
from django.db import transaction

from acp_integration import SyncPromptContext, acp_agent, on
from tickets.meeting import TOGETHER
from tickets.models import Ticket

print("printed while the agent is imported")


@acp_agent(name="tickets", title="Tickets", version="1.0.0")
class TicketAgent:
    @on.prompt
    def reply(self, turn: SyncPromptContext) -> str:
        verb, _, rest = turn.text.partition(" ")
        return getattr(self, f"do_{verb}", self.echo)(turn, rest)

    def echo(self, turn, text):
        return f"echo: {turn.text}"

    def do_create(self, turn, title):
        with transaction.atomic():
            ticket = Ticket.objects.create(title=title)
        return f"created {ticket.title}"

    def do_count(self, turn, _):
        return f"{Ticket.objects.count()} tickets"

    def do_slow(self, turn, seconds):
        Ticket.objects.count()
        time.sleep(float(seconds))
        return "slow"

    def do_meet(self, turn, _):
        count = Ticket.objects.count()
        TOGETHER.wait()
        return f"{count} tickets"

    def do_async(self, turn, _):
        return f"{async_to_sync(Ticket.objects.acount)()} tickets"

    def do_whoami(self, turn, _):
        return "nobody" if turn.user is None else turn.user.get_username()

    def do_tenant(self, turn, _):
        return turn.http.scope["acp_django.request"].tenant

    def do_stream(self, turn, count):
        for number in range(int(count)):
            turn.send_message(f"{number}\n")
        return "streamed"

    def do_wait(self, turn, _):
        turn.send_message("waiting")
        turn.wait_cancelled()
        return "cancelled"

    def do_perm(self, turn, _):
        options = [
            {"optionId": "y", "name": "Yes", "kind": "allow_once"},
            {"optionId": "n", "name": "No", "kind": "reject_once"},
        ]
        turn.send_update({"sessionUpdate": "tool_call", "toolCallId": "1", "title": "ask", "status": "pending"})
        return f"permission: {turn.request_permission({'toolCallId': '1'}, options)}"

    def do_noise(self, turn, _):
        print("printed")
        sys.__stdout__.write("written\n")
        sys.__stdout__.flush()
        os.write(1, b"written to the descriptor\n")
        logging.getLogger("tickets").warning("logged to stdout")
        ctypes.CDLL(None).puts(b"written from C")
        subprocess.run(["echo", "echoed by a child"], check=True)
        return "noisy"
