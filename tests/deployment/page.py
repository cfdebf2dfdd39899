"""What docs/deployment.md shows, as files."""

import re
from pathlib import Path

PAGE = Path(__file__).resolve().parents[2] / "docs" / "deployment.md"
BLOCK = re.compile(r"^```(haproxy|nginx|redis|yaml|python)\n(.*?)^```", re.MULTILINE | re.DOTALL)


def blocks() -> dict[tuple[str, str], str]:
    """The blocks by their language and the name in their first line, empty if it names none."""
    found = {}
    for language, text in BLOCK.findall(PAGE.read_text()):
        named = re.match(r"# (\S+)\n", text)
        key = language, named[1] if named else ""
        assert key not in found, f"two blocks are called {key}"
        found[key] = text
    return found


def block(language: str, name: str = "") -> str:
    """One of them."""
    return blocks()[language, name]
