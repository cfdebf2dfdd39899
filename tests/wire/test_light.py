"""The vocabulary and the door to the SDK are fast to import: neither the SDK nor pydantic comes along."""

import pytest

HEAVY = ("acp", "pydantic", "fastapi", "starlette", "django")


@pytest.mark.parametrize("module", ["acp_integration.wire.decoding", "acp_integration.sdk"])
def test_importing_it_imports_nothing_heavy(run_python, module):
    done = run_python("-c", f"import sys, {module}; print([name for name in {HEAVY!r} if name in sys.modules])")
    assert (done.returncode, done.stdout.strip()) == (0, "[]"), done.stderr
