from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

from helpdesk.models import Ticket


def tickets(request: HttpRequest) -> HttpResponse:
    return render(request, "helpdesk/tickets.html", {"tickets": Ticket.objects.all()})
