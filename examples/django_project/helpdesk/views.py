from django.views.generic import ListView

from helpdesk.models import Ticket


class Tickets(ListView[Ticket]):
    model = Ticket
    template_name = "helpdesk/tickets.html"
