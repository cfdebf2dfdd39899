"""The app that a project adds to INSTALLED_APPS to keep its agent's sessions."""

from django.apps import AppConfig


class AcpSessionsConfig(AppConfig):
    """Models, migrations and admin pages of stored sessions."""

    name = "acp_django.sessions"
    label = "acp_sessions"
    verbose_name = "Agent sessions"
    default_auto_field = "django.db.models.BigAutoField"
