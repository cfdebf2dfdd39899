"""What is installed is what users were promised."""

import re
import tomllib
import zipfile

import pytest


@pytest.fixture(scope="module")
def project(repo_root):
    return tomllib.loads((repo_root / "pyproject.toml").read_text())["project"]


@pytest.fixture
def wheel(run_python, repo_root, tmp_path) -> zipfile.ZipFile:
    built = run_python("-m", "hatchling", "build", "--target", "wheel", "--directory", tmp_path, cwd=repo_root)
    assert built.returncode == 0, built.stderr
    (file,) = tmp_path.glob("*.whl")
    with zipfile.ZipFile(file) as archive:
        yield archive


def test_the_wheel_holds_the_three_typed_packages_and_nothing_else(wheel):
    names = wheel.namelist()
    roots = {name.partition("/")[0] for name in names if ".dist-info/" not in name}
    assert roots == {"acp_integration", "acp_fastapi", "acp_django"}
    assert {f"{root}/py.typed" for root in roots} <= set(names)
    assert not [name for name in names if name.endswith((".pyc", ".sqlite3"))]


def test_the_extra_all_is_every_other_extra(project):
    extras = project["optional-dependencies"]
    (everything,) = extras["all"]
    assert set(re.search(r"\[(.*)\]", everything)[1].split(",")) == set(extras) - {"all"}


def test_an_error_about_a_missing_extra_names_one_that_exists(project, committed_texts):
    extras = set(project["optional-dependencies"])
    named = re.compile(r"MissingExtra\([^)]*,\s*(?:extra=)?\"(\w+)\"\)|acp-integration\[([\w,]+)\]")
    texts = (text for name, text in committed_texts.items() if name.startswith("acp_") or name.endswith(".md"))
    used = {extra for text in texts for pair in named.findall(text) for part in pair for extra in part.split(",")}
    assert used - {""} <= extras


def test_every_dependency_of_the_project_is_pinned_for_ci(project, repo_root):
    pinned = {
        line.partition("==")[0].lower().replace("_", "-")
        for line in (repo_root / "constraints.txt").read_text().splitlines()
        if "==" in line
    }
    wanted = [*project["dependencies"], *(dep for deps in project["optional-dependencies"].values() for dep in deps)]
    names = {re.match(r"[\w-]+", dep)[0].lower() for dep in wanted} - {"acp-integration"}
    assert names <= pinned


def test_the_changelog_knows_the_version(project, repo_root):
    headings = re.findall(r"^## (\S+)", (repo_root / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert headings[0] in {"Unreleased", project["version"]}


def test_every_target_is_listed_by_make_help(run_command, repo_root):
    declared = re.findall(r"^\.PHONY: (\S+)$", (repo_root / "Makefile").read_text(), re.MULTILINE)
    listed = re.findall(r"^make (\S+)", run_command("make", cwd=repo_root).stdout, re.MULTILINE)
    assert {"demo", "test", "check"} <= set(listed)
    assert sorted(listed) == sorted(declared)


def test_every_command_of_make_in_the_pages_exists(committed_texts, repo_root):
    declared = set(re.findall(r"^\.PHONY: (\S+)$", (repo_root / "Makefile").read_text(), re.MULTILINE))
    named = re.compile(r"(?:`|\$ )make ([a-z-]+)")
    pages = (text for name, text in committed_texts.items() if name.endswith((".md", ".toml", ".py")))
    assert {target for text in pages for target in named.findall(text)} <= declared
