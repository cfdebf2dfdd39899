"""The app a project adds to INSTALLED_APPS."""

import sys
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any, Final

from django.apps import AppConfig
from django.core.checks import CheckMessage, register
from django.utils.module_loading import import_string

_GUARD: Final = "acp_integration.transports.guard.guard_standard_streams"
_LOADING: Final = "acp_django.project.loading"


class AcpDjangoConfig(AppConfig):
    """Registers the system checks; agents are imported when one is first needed, not here."""

    name = "acp_django"
    verbose_name = "Agent Client Protocol"

    def __init__(self, app_name: str, app_module: Any) -> None:
        super().__init__(app_name, app_module)
        self.streams = None
        """Standard input and output, taken as early as a management command can: before any model is imported."""
        self._loading = ExitStack()
        if sys.argv[1:2] == ["acp_stdio"] or sys.argv[1:3] == ["acp", "stdio"]:
            self.streams = import_string(_GUARD)()
            self._loading.enter_context(import_string(_LOADING)(f"{sys.argv[0]} {sys.argv[1]}"))

    def ready(self) -> None:
        """Called by Django once every app is loaded."""
        self._loading.close()
        register(check_acp)


def check_acp(app_configs: Any, **options: Any) -> list[CheckMessage]:
    """Load the checks when they run: most processes of a project run none and need nothing else of this package."""
    check: Callable[..., list[CheckMessage]] = import_string("acp_django.checks.check_project")
    return check(app_configs, **options)
