"""An ``__init__`` holds names and nothing else; what it lists (in the linter's order) is what it gives."""

import ast
import importlib
from pathlib import Path

import pytest

# A new name at a root is a decision, so it is written down twice.
ROOT_NAMES = {
    "acp_integration": {
        "AcpAgentSettings",
        "AcpClient",
        "AcpClientSettings",
        "AcpError",
        "AcpSession",
        "PromptContext",
        "RequestError",
        "SyncAcpClient",
        "SyncPromptContext",
        "acp_agent",
        "current_turn",
        "on",
        "publish",
    },
    "acp_fastapi": {"AcpFastAPI", "ClientDep", "SyncClientDep", "TurnDep"},
    "acp_django": set(),
}
NAMING = (ast.Import, ast.ImportFrom, ast.Assign, ast.AnnAssign)
LAZY = {"__getattr__", "__dir__"}


def is_naming(node: ast.stmt) -> bool:
    """Tell whether a statement only names things: an import, a constant, a docstring, a lazy import."""
    match node:
        case ast.Expr(value=ast.Constant()):
            return True
        case ast.If(test=ast.Name(id="TYPE_CHECKING")):
            return all(map(is_naming, node.body))
        case ast.FunctionDef():
            return node.name in LAZY
    return isinstance(node, NAMING)


def package_name(package_init: str) -> str:
    return ".".join(Path(package_init).parent.parts)


def test_an_init_only_names(repo_root, package_init):
    tree = ast.parse((repo_root / package_init).read_text())
    assert not [ast.unparse(node).splitlines()[0] for node in tree.body if not is_naming(node)]


def test_what_all_lists_is_importable(package_init):
    package = importlib.import_module(package_name(package_init))
    listed = list(getattr(package, "__all__", []))
    assert len(listed) == len(set(listed))
    assert not [name for name in listed if not hasattr(package, name)]


def test_an_init_gives_no_name_that_all_does_not_list(repo_root, package_init):
    package = importlib.import_module(package_name(package_init))
    listed = set(getattr(package, "__all__", []))
    tree = ast.parse((repo_root / package_init).read_text())
    imported = {
        alias.asname or alias.name
        for node in tree.body
        if isinstance(node, ast.ImportFrom) and node.module not in {"typing", "importlib"}
        for alias in node.names
    }
    assert {name for name in imported if not name.startswith("_")} <= listed


@pytest.mark.parametrize(("package", "names"), ROOT_NAMES.items(), ids=ROOT_NAMES)
def test_a_root_gives_exactly_the_public_names(package, names):
    assert set(getattr(importlib.import_module(package), "__all__", ())) == names
