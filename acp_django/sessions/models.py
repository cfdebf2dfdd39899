"""What is kept of each session: one row for the session, one for each entry of its transcript."""

from typing import ClassVar

from django.db import models


class Session(models.Model):
    """One conversation of one owner.

    JSON is kept as text: databases differ in what their own JSON columns accept, and none has to look inside.
    """

    id = models.CharField(primary_key=True, max_length=255)
    owner = models.CharField(
        max_length=255, null=True, blank=True, help_text="The principal it belongs to."
    )  # nobody is not ""
    cwd = models.TextField("directory")
    directories = models.TextField(default="[]", editable=False)
    title = models.TextField(null=True, blank=True)  # None and "" are different titles
    created_at = models.DateTimeField("created", editable=False)
    updated_at = models.DateTimeField("last changed", editable=False)
    mode = models.CharField(max_length=255, null=True, blank=True, editable=False)  # None is no mode
    options = models.TextField(default="{}", editable=False)
    state = models.TextField(default="{}", help_text="What the agent keeps for it, JSON.")
    holder = models.PositiveBigIntegerField(default=1, editable=False)
    turn = models.BooleanField("in a turn", default=False, editable=False)

    class Meta:
        """One index for the list of an owner's sessions, newest first."""

        indexes: ClassVar = [models.Index(fields=["owner", "-updated_at", "-id"], name="acp_sessions_listed")]

    def __str__(self) -> str:
        return self.title or self.id


class Entry(models.Model):
    """One line of a transcript."""

    session = models.ForeignKey(Session, models.CASCADE, related_name="entries", db_index=False)
    number = models.BigIntegerField()
    kind = models.CharField(max_length=8)
    cut = models.BooleanField(default=False)
    update = models.TextField()

    class Meta:
        """A number is given once in a session, whoever writes."""

        verbose_name_plural = "entries"
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["session", "number"], name="acp_sessions_entry_number"),
        ]

    def __str__(self) -> str:
        return f"{self.session_id} {self.number}"
