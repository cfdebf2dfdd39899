import os
import sys

import pytest

from acp_django.project import SETTINGS, default_settings, enter_project
from acp_integration.errors import ConfigurationError

MANAGE = "import os\n{line}\nraise SystemExit('manage.py must not run')\n"


@pytest.fixture(autouse=True)
def process_state(monkeypatch):
    monkeypatch.delenv(SETTINGS, raising=False)
    monkeypatch.setenv(SETTINGS, "unused")  # so that whatever a test sets is undone
    monkeypatch.delenv(SETTINGS)
    monkeypatch.setattr(sys, "path", [path for path in sys.path if path not in {"", os.getcwd()}])


@pytest.mark.parametrize(
    "line",
    [
        'os.environ.setdefault("DJANGO_SETTINGS_MODULE", "shop.settings")',
        'os.environ["DJANGO_SETTINGS_MODULE"] = "shop.settings"',
    ],
)
def test_the_settings_of_a_manage_py_are_read_without_running_it(tmp_path, line):
    (tmp_path / "manage.py").write_text(MANAGE.format(line=line))
    assert default_settings(tmp_path / "manage.py") == "shop.settings"


@pytest.mark.parametrize("text", ["", "def broken(:", "print('no settings')", "\x00"])
def test_a_manage_py_without_settings_names_none(tmp_path, text):
    (tmp_path / "manage.py").write_text(text)
    assert default_settings(tmp_path / "manage.py") is None


def test_an_argument_wins_over_the_environment_and_the_environment_over_manage_py(tmp_path, monkeypatch):
    (tmp_path / "manage.py").write_text(MANAGE.format(line=f'os.environ.setdefault("{SETTINGS}", "from.manage")'))
    enter_project(None, str(tmp_path))
    assert os.environ[SETTINGS] == "from.manage"
    assert sys.path[0] == str(tmp_path)
    monkeypatch.setenv(SETTINGS, "from.environment")
    enter_project(None, str(tmp_path))
    assert os.environ[SETTINGS] == "from.environment"
    enter_project("from.argument", str(tmp_path))
    assert os.environ[SETTINGS] == "from.argument"


def test_a_working_directory_that_python_does_not_import_from_is_not_looked_at(tmp_path, monkeypatch):
    (tmp_path / "manage.py").write_text(MANAGE.format(line=f'os.environ.setdefault("{SETTINGS}", "a.strangers")'))
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ConfigurationError, match="--app-dir"):
        enter_project(None, None)
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    enter_project(None, None)
    assert os.environ[SETTINGS] == "a.strangers"
