"""One concept a file, and a name that says which."""

import ast
import re
import tokenize
from io import StringIO
from pathlib import Path

import pytest

MAX_LINES = 300
THIN = {"acp_django": 800, "acp_fastapi": 600}
"""What a framework package may hold; whatever needs no framework belongs in the core."""
OWN_APP = "sessions"  # stored sessions: an app of its own beside the framework package
LAYOUT = {tokenize.COMMENT, tokenize.NL, tokenize.INDENT, tokenize.DEDENT, tokenize.ENCODING, tokenize.ENDMARKER}
ATTIC_NAMES = {"utils", "util", "helpers", "helper", "common", "base", "misc", "manager"}
EMPTY_CLASS_NAME = re.compile(r"^_?Base[A-Z]|(Mixin|Impl|Manager|V2)$")


def test_a_module_has_at_most_300_lines(repo_root, module_file):
    lines = len((repo_root / module_file).read_text().splitlines())
    assert lines <= MAX_LINES, f"{module_file} has {lines} lines: give its second concept a file"


def test_a_module_is_named_for_its_concept(module_file):
    parts = {part.lstrip("_") for part in Path(module_file).with_suffix("").parts}
    assert not parts & ATTIC_NAMES
    assert not any(re.search(r"_v\d+$", part) for part in parts)


def test_a_class_is_named_for_its_concept(repo_root, module_file):
    tree = ast.parse((repo_root / module_file).read_text())
    classes = [node for node in ast.walk(tree) if isinstance(node, ast.ClassDef)]
    assert not [cls.name for cls in classes if EMPTY_CLASS_NAME.search(cls.name)]


def test_every_package_is_typed(repo_root):
    roots = sorted(init.parent for init in repo_root.glob("acp_*/__init__.py"))
    assert [root.name for root in roots] == ["acp_django", "acp_fastapi", "acp_integration"]
    assert all((root / "py.typed").is_file() for root in roots)


@pytest.mark.parametrize("package", THIN)
def test_a_framework_package_is_thin(repo_root, package):
    folder = repo_root / package
    files = [file for file in folder.rglob("*.py") if OWN_APP not in file.relative_to(folder).parts]
    lines = sum(len(code_lines(file.read_text())) for file in files)
    assert 0 < lines < THIN[package], f"{package} has {lines} lines of code: what needs no framework is the core's"


def test_lines_that_hold_no_code_do_not_count():
    text = '"""About."""\n\n# why\nX = (\n    # inside\n    1,\n)\nclass A:\n    """It."""\n    y = "text"\n'
    assert code_lines(text) == {4, 6, 7, 8, 10}


def code_lines(text: str) -> set[int]:
    """The numbers of the lines with code: no blank ones, no comments, no texts that stand alone."""
    lines: set[int] = set()
    statement: list[tokenize.TokenInfo] = []
    for token in tokenize.generate_tokens(StringIO(text).readline):
        if token.type == tokenize.NEWLINE:
            if [part.type for part in statement] != [tokenize.STRING]:
                lines.update(number for part in statement for number in range(part.start[0], part.end[0] + 1))
            statement = []
        elif token.type not in LAYOUT:
            statement.append(token)
    return lines
