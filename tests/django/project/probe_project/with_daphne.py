"""The project with daphne's runserver, which is an ASGI server."""

from probe_project.settings import *  # noqa: F403  # Django's way to vary settings
from probe_project.settings import INSTALLED_APPS

INSTALLED_APPS = ["daphne", *INSTALLED_APPS]
