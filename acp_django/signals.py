"""What receivers can hear of agents; a receiver that fails is logged and disturbs nobody.

Each signal is sent with the agent as sender.
"""

from typing import Final

from django.dispatch import Signal

connection_opened: Final = Signal()
connection_closed: Final = Signal()
session_created: Final = Signal()
session_closed: Final = Signal()
turn_started: Final = Signal()
turn_finished: Final = Signal()
