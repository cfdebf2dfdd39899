"""Who may open a session, asked in both ways a project may write it."""

from tickets.models import Ticket


def only_with_a_ticket(user, call):
    return Ticket.objects.filter(title=user.get_username()).exists() if user is not None else False


async def only_with_a_ticket_async(user, call):
    return user is not None and await Ticket.objects.filter(title=user.get_username()).aexists()
