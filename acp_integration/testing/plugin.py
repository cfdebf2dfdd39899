"""The pytest plugin: the ``connect`` fixture, and one run of a test for each cell of its module.

A module that judges its host says ``from acp_integration.testing.conformance.suite import *`` and names its cells in
``CELLS``. Its host serves an agent that understands the probe's words: ``stream:N``, ``wait_for_cancel``, ``perm`` and
the others that the suite sends.
"""

from collections.abc import AsyncIterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from acp_integration.testing.conformance.cells import Cell, Host

# Every test run of an environment loads this module, so it imports nothing that only the suite needs.
pytest.register_assert_rewrite("acp_integration.testing.conformance.suite")


def pytest_configure(config: pytest.Config) -> None:
    """Make the marker known."""
    config.addinivalue_line("markers", "smoke: judges also the cells that are judged by smoke tests only")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run a test that asks for ``connect`` on every cell that its module names."""
    if "acp_cell" not in metafunc.fixturenames:
        return
    cells: list[Cell] = getattr(metafunc.module, "CELLS", [])
    smoke = metafunc.definition.get_closest_marker("smoke") is not None
    name = metafunc.definition.originalname
    rows = [pytest.param(cell, id=cell.name, marks=_marks(cell, name)) for cell in cells if smoke or not cell.smoke]
    metafunc.parametrize("acp_cell", rows)


def _marks(cell: "Cell", test: str) -> list[pytest.MarkDecorator]:
    if cell.impossible is not None:
        return [pytest.mark.skip(reason=cell.impossible)]
    if test in cell.cannot:
        return [pytest.mark.xfail(reason=cell.cannot[test], strict=True)]
    return []


@pytest.fixture
async def connect(acp_cell: "Cell") -> "AsyncIterator[Host]":
    """``async with connect() as peer:`` gives a raw peer on a new connection to the cell's host."""
    async with acp_cell.hosting() as host:
        yield host
