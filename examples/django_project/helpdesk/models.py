from django.conf import settings
from django.db import models


class Ticket(models.Model):
    title = models.CharField(max_length=200)
    answer = models.TextField(blank=True)
    closed = models.BooleanField(default=False)
    opened_by = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, blank=True, on_delete=models.SET_NULL)
    opened_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ("pk",)

    def __str__(self) -> str:
        state = "closed" if self.closed else "answered" if self.answer else "open"
        return f"#{self.pk} {self.title} ({state})"
