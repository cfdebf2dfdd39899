"""One Django project for every test of this folder, on a database file of its own."""

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from tempfile import mkdtemp

import django
import pytest
from django.core.management import call_command
from django.db import connections

PROJECT = Path(__file__).resolve().parent / "project"

if "DJANGO_SETTINGS_MODULE" not in os.environ:
    sys.path.insert(0, str(PROJECT))
    os.environ["DJANGO_SETTINGS_MODULE"] = "probe_project.settings"
    os.environ["PROBE_DATABASE"] = str(Path(mkdtemp(prefix="acp-django-")) / "db.sqlite3")
django.setup()


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
    """The database, emptied after the test."""
    yield tables
    call_command("flush", interactive=False, verbosity=0)
    connections.close_all()
