"""The store that `session-store: django` names."""

from typing import Final

from django.apps import apps

from acp_integration.errors import ConfigurationError
from acp_integration.store import DurableStore, SessionStore

STORE_NAME: Final = "django"
APP: Final = "acp_django.sessions"


def django_store() -> SessionStore:
    """Keeps sessions in the project's database.

    Raises:
        ConfigurationError: if the app with the tables is not installed.
    """
    if not apps.is_installed(APP):
        raise ConfigurationError(f"acp.agent.session-store=django needs {APP!r} in INSTALLED_APPS, and its migrations")
    # Models can be imported only where their app is installed.
    from acp_django.sessions.tables import OrmTables  # noqa: PLC0415

    return DurableStore(OrmTables())
