"""One concept a file, and a name that says which."""

import ast
import re
from pathlib import Path

MAX_LINES = 300
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
