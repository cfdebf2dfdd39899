"""A place where workers meet, with a path short enough for sockets."""

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest


@pytest.fixture
def meeting_place() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="acp-test-") as directory:
        yield Path(directory)
