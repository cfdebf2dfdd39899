"""Every mistake in the table is answered with exactly the lines beside it."""

import json
from pathlib import Path

import pytest

from acp_integration import AcpAgentSettings, AcpClientSettings
from acp_integration.errors import ConfigurationError, UnknownKey

TABLE = json.loads(Path(__file__).with_name("bad_inputs.json").read_text(encoding="utf-8"))
IDS = [f"row {number}" for number in range(1, len(TABLE) + 1)]
READERS = {
    "agent": AcpAgentSettings.load,
    "client": AcpClientSettings.load,
    "clients": AcpClientSettings.load_named,
}


def read(row, folder):
    files = []
    for name, text in row.get("files", {}).items():
        files.append(folder / name)
        files[-1].write_text(text, encoding="utf-8")
    options = {"prefix": row["prefix"]} if "prefix" in row else {}
    return READERS[row["reads"]](row.get("mapping"), environ=row.get("environ", {}), files=files, **options)


@pytest.mark.parametrize("row", TABLE, ids=IDS)
def test_a_bad_input_gives_exactly_its_lines(row, tmp_path):
    with pytest.raises(ConfigurationError) as raised:
        read(row, tmp_path)
    problems = [line.replace(f"{tmp_path}/", "") for line in raised.value.problems]
    assert problems == row["error"]
    assert str(raised.value) == "\n".join(raised.value.problems)


@pytest.mark.parametrize("row", TABLE, ids=IDS)
def test_an_error_is_about_unknown_keys_only_if_all_its_lines_are(row, tmp_path):
    with pytest.raises(ConfigurationError) as raised:
        read(row, tmp_path)
    assert isinstance(raised.value, UnknownKey) == all("is not a known key" in line for line in row["error"])


def test_the_table_has_sixty_different_mistakes():
    assert len({json.dumps(row, sort_keys=True) for row in TABLE}) >= 60
