"""Every error a user can see is explained on the page of errors."""

import inspect
import re

import pytest

from acp_integration import errors

ERRORS = sorted(name for name, cls in inspect.getmembers(errors, inspect.isclass) if issubclass(cls, errors.AcpError))


@pytest.fixture(scope="module")
def page(repo_root) -> str:
    return (repo_root / "docs" / "errors.md").read_text()


@pytest.mark.parametrize("name", ERRORS)
def test_an_error_has_its_line(page, name):
    assert re.search(rf"^\| `{name}` \| .{{20,}} \| .{{20,}} \|$", page, re.MULTILINE)


def test_the_page_explains_no_error_that_is_gone(page):
    assert set(re.findall(r"^\| `(\w+)` \|", page, re.MULTILINE)) == set(ERRORS)


@pytest.mark.parametrize("name", ERRORS)
def test_the_tree_drawn_above_the_code_shows_every_error(name):
    assert re.search(rf"\b{name}\b", errors.__doc__)
