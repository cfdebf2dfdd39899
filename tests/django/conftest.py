"""One Django project for every test of this folder, on a database file of its own."""

import atexit
import os
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from tempfile import mkdtemp

import django
import pytest
from django.core.management import call_command
from django.db import connections

PROJECT = Path(__file__).resolve().parent / "project"

FOLDER = mkdtemp(prefix="acp-django-")
atexit.register(shutil.rmtree, FOLDER)

sys.path.insert(0, str(PROJECT))
os.environ |= {"DJANGO_SETTINGS_MODULE": "probe_project.settings", "PROBE_DATABASE": f"{FOLDER}/db.sqlite3"}
django.setup()

from acp_django.serving import serving  # noqa: E402  # Django comes first


@pytest.fixture(scope="session")
def project() -> Path:
    """The folder of the project's manage.py."""
    return PROJECT


@pytest.fixture(scope="session")
def tables() -> Iterator[Path]:
    """The project's database with its tables."""
    call_command("migrate", verbosity=0)
    yield Path(connections["default"].settings_dict["NAME"])
    connections.close_all()


@pytest.fixture
def database(tables: Path) -> Iterator[Path]:
    """The database, emptied after the test; the process serves no agent yet."""
    serving.cache_clear()
    yield tables
    call_command("flush", interactive=False, verbosity=0)
    connections.close_all()
