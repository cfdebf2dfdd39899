"""The pages stay true: links lead somewhere, code blocks are code, names in them exist."""

import ast
import importlib
import re
from pathlib import PurePosixPath

import pytest

OURS = ("acp_integration", "acp_fastapi", "acp_django")
LINK = re.compile(r"\[[^\]]*\]\((?!https?:|#|mailto:)([^)#\s]+)")
PYTHON_BLOCK = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)


@pytest.fixture(scope="module")
def pages(committed_texts) -> dict[str, str]:
    return {name: text for name, text in committed_texts.items() if name.endswith(".md")}


@pytest.fixture(scope="module")
def python_blocks(pages) -> list[tuple[str, ast.Module]]:
    return [(name, ast.parse(block, name)) for name, text in pages.items() for block in PYTHON_BLOCK.findall(text)]


def test_a_link_leads_to_a_file(pages, repo_root):
    links = [(name, link) for name, text in pages.items() for link in LINK.findall(text)]
    assert links
    assert not [(name, link) for name, link in links if not (repo_root / PurePosixPath(name).parent / link).exists()]


def test_every_page_is_in_the_index(pages):
    index = pages["docs/README.md"]
    listed = set(LINK.findall(index))
    written = {str(PurePosixPath(name).relative_to("docs")) for name in pages if name.startswith("docs/")}
    assert written - {"README.md"} <= listed


def test_an_import_in_a_code_block_works(python_blocks):
    imports = [
        (name, node.module, alias.name)
        for name, tree in python_blocks
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith(OURS)
        for alias in node.names
    ]
    assert imports
    missing = [entry for entry in imports if not hasattr(importlib.import_module(entry[1]), entry[2])]
    assert not missing
