"""What the house tests look at: the modules of the packages and the files of the repository."""

import subprocess
from pathlib import Path

import pytest

PACKAGES = ("acp_integration", "acp_fastapi", "acp_django")
REPO_ROOT = Path(__file__).resolve().parents[2]


def modules() -> list[str]:
    """Every Python file of the three packages, relative to the root."""
    files = (file for package in PACKAGES for file in (REPO_ROOT / package).rglob("*.py"))
    return sorted(str(file.relative_to(REPO_ROOT)) for file in files)


def repository_files() -> list[str]:
    """Every file that is, or is about to be, committed."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard"],
        cwd=REPO_ROOT,
        check=True,
        capture_output=True,
        text=True,
    )
    return sorted(name for name in set(listed.stdout.splitlines()) if (REPO_ROOT / name).is_file())


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "module_file" in metafunc.fixturenames:
        metafunc.parametrize("module_file", modules())
    if "package_init" in metafunc.fixturenames:
        metafunc.parametrize("package_init", [file for file in modules() if file.endswith("__init__.py")])


@pytest.fixture(scope="session")
def committed_texts() -> dict[str, str]:
    """Every text file of the repository by its name."""
    texts = {}
    for name in repository_files():
        content = (REPO_ROOT / name).read_bytes()
        if b"\0" not in content:
            texts[name] = content.decode()
    return texts
