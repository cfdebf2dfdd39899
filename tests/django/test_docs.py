"""The page about Django is a project: its files are written, checked, tried and tested as it says."""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

BLOCK = re.compile(r"^```python\n# ([\w/]+\.py)(?:: [^\n]*)?\n(.*?)^```", re.MULTILINE | re.DOTALL)
COMPLAINT = re.compile(r"^\| (DJ\d+) \|[^|]+\| ([^|]+) \|$", re.MULTILINE)
TEST = re.compile(r"`(test_\w+\.py)::([\w:]+)`")
CHECK = re.compile(r"^\| `(acp_django\.[EW]\d+)` \|", re.MULTILINE)

BASE = """
from pathlib import Path
BASE_DIR = Path(__file__).resolve().parent.parent
SECRET_KEY = "of a test"
ALLOWED_HOSTS = ["testserver"]
ROOT_URLCONF = "shop.urls"
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
DATABASES = {"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": BASE_DIR / "db.sqlite3"}}
MIDDLEWARE = [
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
]
"""
APPS = """
APPS = ["django.contrib.auth", "django.contrib.contenttypes", "django.contrib.sessions"]
INSTALLED_APPS = [name for entry in INSTALLED_APPS for name in (APPS if entry is ... else [entry])]
"""
MODELS = "from django.db import models\n\n\nclass Order(models.Model):\n    pass\n"
MANAGE = """
import os, sys
from django.core.management import execute_from_command_line
os.environ.setdefault("DJANGO_SETTINGS_MODULE", "shop.settings")
execute_from_command_line(sys.argv)
"""
SETTINGS_FILES = {"settings.py", "urls.py", "asgi.py"}


@pytest.fixture(scope="module")
def page() -> str:
    return (Path(__file__).resolve().parent.parent.parent / "docs" / "django.md").read_text()


@pytest.fixture
def blocks(page: str) -> list[tuple[str, str]]:
    """Each block of code with the file it belongs to."""
    found = BLOCK.findall(page)
    assert len(found) == page.count("```python")
    return [(f"shop/{name}" if name in SETTINGS_FILES else name, code) for name, code in found]


@pytest.fixture
def manage(
    tmp_path: Path, blocks: list[tuple[str, str]], run_python: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> Callable[..., str]:
    """The project of the page, and a way to run its commands; the first version of each file is used."""
    monkeypatch.delenv("DJANGO_SETTINGS_MODULE", raising=False)
    files = dict(reversed(blocks))
    files["shop/settings.py"] = BASE + files["shop/settings.py"] + APPS
    files |= {"manage.py": MANAGE, "orders/models.py": MODELS, "shop/__init__.py": "", "orders/__init__.py": ""}
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)

    def run(*arguments: str) -> str:
        done = run_python(tmp_path / "manage.py", *arguments)
        assert done.returncode == 0, done.stdout + done.stderr
        return str(done.stdout)

    run("migrate", "--run-syncdb", "-v0")
    return run


def test_the_project_of_one_screen_works(manage: Callable[..., str]) -> None:
    manage("check", "--fail-level", "WARNING")
    assert "There are 0 orders" in manage("acp", "ask", "how many orders?")
    entry = json.loads(manage("acp", "editor", "zed"))
    assert "acp_django" in str(entry)


def test_the_tests_that_the_page_shows_pass(manage: Callable[..., str]) -> None:
    manage("test", "orders", "-v0")


def test_every_way_to_set_something_is_accepted(
    manage: Callable[..., str], blocks: list[tuple[str, str]], tmp_path: Path
) -> None:
    variants = [code for name, code in blocks if name == "shop/settings.py"][1:]
    assert variants
    for number, code in enumerate(variants):
        (tmp_path / "shop" / f"variant_{number}.py").write_text(f"from shop.settings import *\n{code}")
        manage("check", "--fail-level", "WARNING", "--settings", f"shop.variant_{number}")


def test_every_other_block_is_code_of_the_project(manage: Callable[..., str], tmp_path: Path) -> None:
    names = [f"{path.parent.name}.{path.stem}" for path in sorted((tmp_path / "orders").glob("*.py"))]
    manage("shell", "-v0", "-c", "; ".join(f"import {name}" for name in names))


def test_every_complaint_has_the_test_that_it_names(page: str) -> None:
    complaints = COMPLAINT.findall(page)
    assert [identifier for identifier, _ in complaints] == [f"DJ{number + 1}" for number in range(page.count("| DJ"))]
    assert all(TEST.search(tests) for _, tests in complaints)
    folder = Path(__file__).resolve().parent
    missing = [
        (file, name)
        for _, tests in complaints
        for file, name in TEST.findall(tests)
        if not all(re.search(rf"(def|class) {part}\b", (folder / file).read_text()) for part in name.split("::"))
    ]
    assert not missing


def test_every_check_is_on_the_page(page: str, repo_root: Path) -> None:
    code = (repo_root / "acp_django" / "checks.py").read_text()
    warnings = {f"acp_django.W00{number}" for number in re.findall(r"_warning\((\d)", code)}
    assert set(CHECK.findall(page)) == warnings | {f"acp_django.E00{number}" for number in range(1, 7)}
