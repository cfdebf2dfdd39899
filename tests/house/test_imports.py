"""What an import costs and brings in: the core stays neutral, the start stays fast."""

import json

import pytest

FRAMEWORKS = {"fastapi", "starlette", "django", "asgiref", "flask"}
SLOW = {"acp", "pydantic", "pydantic_settings"}

IMPORT_ALL = """
import importlib, json, pkgutil, sys
import acp_integration
for module in pkgutil.walk_packages(acp_integration.__path__, "acp_integration."):
    if not module.name.endswith("__main__"):
        importlib.import_module(module.name)
print(json.dumps(sorted({name.partition(".")[0] for name in sys.modules})))
"""
IMPORT_ONE = """
import importlib, json, sys
importlib.import_module(sys.argv[1])
print(json.dumps(sorted({name.partition(".")[0] for name in sys.modules})))
"""


def loaded(done) -> set[str]:
    """The top-level packages that a run reports on stdout."""
    assert done.returncode == 0, done.stderr
    return set(json.loads(done.stdout))


def test_the_core_imports_no_framework(run_python):
    packages = loaded(run_python("-c", IMPORT_ALL))
    assert not packages & FRAMEWORKS


def test_no_module_of_the_core_imports_the_sdk_at_its_import(run_python):
    assert "acp" not in loaded(run_python("-c", IMPORT_ALL))


@pytest.mark.parametrize(
    "module",
    [
        "acp_integration",
        "acp_integration.assembly",
        "acp_integration.errors",
        "acp_integration.runtime",
        "acp_integration.types",
        "acp_integration.transports",
    ],
)
def test_the_runtime_imports_neither_pydantic_nor_the_sdk(run_python, module):
    assert not loaded(run_python("-c", IMPORT_ONE, module)) & SLOW


@pytest.mark.parametrize(("package", "stranger"), [("acp_fastapi", "django"), ("acp_django", "fastapi")])
def test_the_framework_packages_are_strangers(run_python, package, stranger):
    packages = loaded(run_python("-c", IMPORT_ONE, package))
    assert stranger not in packages
    assert "acp" not in packages
