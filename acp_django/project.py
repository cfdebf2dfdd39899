"""Which project a command is for, found without importing any of it."""

import os
import re
import sys
from argparse import ArgumentParser
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import django

from acp_integration.errors import ConfigurationError
from acp_integration.patience import Patience

SETTINGS: Final = "DJANGO_SETTINGS_MODULE"
_NAMED: Final = re.compile(rf"""^[^#\n]*["']{SETTINGS}["']\]?\s*[,=]\s*["']([\w.]+)["']""", re.MULTILINE)


def loading(name: str) -> Patience:
    """Stands around the set-up of a project: a slow one is said on standard error by the program of this name."""
    return Patience(name, "loading the project's settings and apps", "loaded the project's settings and apps")


def set_up(arguments: Sequence[str]) -> None:
    """Set up the project that a command line is about, as manage.py does for its own.

    Raises:
        ConfigurationError: if it names no settings.
    """
    parser = ArgumentParser(add_help=False, allow_abbrev=False)
    parser.add_argument("--settings")
    parser.add_argument("--app-dir", "--pythonpath")
    named, _ = parser.parse_known_args(arguments)
    enter_project(named.settings, named.app_dir)
    django.setup()


def enter_project(settings: str | None, directory: str | None) -> None:
    """Make a project importable and name its settings to Django.

    Args:
        settings: the settings module, or None for that of the environment or else of the project's manage.py.
        directory: the folder of the project's manage.py; None is the working directory, and only where Python itself
            imports from there: an editor may have started this process in a stranger's folder.

    Raises:
        ConfigurationError: if no settings module is named anywhere.
    """
    here = Path.cwd() if "" in sys.path or str(Path.cwd()) in sys.path else None
    folder = here if directory is None else Path(directory).resolve()
    if folder is not None and str(folder) not in sys.path:
        sys.path.insert(0, str(folder))
    named = settings or os.environ.get(SETTINGS) or (default_settings(folder / "manage.py") if folder else None)
    if not named:
        raise ConfigurationError(
            f"No Django settings: set {SETTINGS}, pass --settings, or pass --app-dir with the folder of a manage.py"
        )
    os.environ[SETTINGS] = named


def default_settings(manage: Path) -> str | None:
    """The settings module that a manage.py gives to the environment, read from its text."""
    try:
        found = _NAMED.search(manage.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return None if found is None else found[1]
