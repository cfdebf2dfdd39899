"""Admin pages: the sessions, and each as the conversation it was. Nothing can be changed, only deleted."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from django.contrib import admin
from django.http import HttpRequest
from django.template.loader import render_to_string
from django.utils.safestring import SafeString

from acp_django.sessions.conversation import conversation
from acp_django.sessions.models import Session
from acp_integration.store import Entry
from acp_integration.store.transcript import replay

if TYPE_CHECKING:
    ModelAdmin = admin.ModelAdmin[Session]
else:
    ModelAdmin = admin.ModelAdmin  # which takes no argument when it runs

MOST_ENTRIES: Final = 2000
"""Entries of a transcript that a page shows, the last ones."""


@admin.register(Session)
class SessionAdmin(ModelAdmin):
    """Sessions, newest first."""

    list_display = ("__str__", "owner", "cwd", "updated_at", "turn")
    list_filter = ("updated_at",)
    search_fields = ("id", "title", "owner", "cwd")
    ordering = ("-updated_at", "-id")
    readonly_fields = ("id", "title", "owner", "cwd", "created_at", "updated_at", "mode", "state", "conversation")
    fields = readonly_fields

    def has_add_permission(self, request: HttpRequest) -> bool:  # noqa: ARG002  # Django's signature
        """Agents make sessions."""
        return False

    def has_change_permission(self, request: HttpRequest, obj: Session | None = None) -> bool:  # noqa: ARG002  # as above
        """What was said was said."""
        return False

    @admin.display(description="Conversation")
    def conversation(self, session: Session) -> SafeString:
        """The transcript; the template escapes all that the agent and its user said."""
        entries = _last_entries(session)
        lines = conversation(replay(entries))
        return render_to_string(
            "acp_sessions/conversation.html", {"lines": lines, "shortened": len(entries) == MOST_ENTRIES}
        )


def _last_entries(session: Session) -> Sequence[Entry]:
    rows = session.entries.order_by("-number")[:MOST_ENTRIES]
    return [Entry(row.number, row.kind, row.update.encode(), row.cut) for row in rows][::-1]  # type: ignore[arg-type]  # one of the kinds
