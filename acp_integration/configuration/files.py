"""Files as a source. They are named, or looked for beside a project; the working directory is never looked at."""

import os
import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any, Final

from acp_integration.configuration.keys import canonical
from acp_integration.errors import ConfigurationError

FilePath = str | os.PathLike[str]
Files = FilePath | Iterable[FilePath]

OWN_FILE = "acp.toml"
PROJECT_FILE = "pyproject.toml"
# Nearly no project has a table of ours, and the parser is slow to import. A key may be written with escapes, too.
_MAY_BE_OURS: Final = re.compile(r"\bacp\b|\\[uU]")


def expand(files: Files) -> tuple[Path, ...]:
    """The files meant, the first one winning; a directory stands for what is ours in it.

    Raises:
        ConfigurationError: if a file that was named does not exist.
    """
    given = [files] if isinstance(files, str | os.PathLike) else list(files)
    found = [path for name in given for path in _beside(Path(name))]
    missing = [f"{path} does not exist" for path in found if not path.is_file()]
    if missing:
        raise ConfigurationError(*missing)
    return tuple(found)


def _beside(path: Path) -> list[Path]:
    if not path.is_dir():
        return [path]
    return [inner for inner in (path / OWN_FILE, path / PROJECT_FILE) if inner.is_file()]


def is_environment_file(path: Path) -> bool:
    """Whether a file holds variables, as ``.env`` does."""
    return path.name.startswith(".env") or path.suffix == ".env"


def read_toml(path: Path, root: str) -> Mapping[str, Any]:
    """What a file sets, as keys that begin with the root: ``[tool.acp]`` of a project file, all of any other.

    Raises:
        ConfigurationError: if the file is not TOML.
    """
    try:
        text = path.read_text(encoding="utf-8")
        if path.name == PROJECT_FILE and not _MAY_BE_OURS.search(text):
            return {}
        document: dict[str, Any] = import_module("tomllib").loads(text)
    except (ValueError, OSError) as error:
        raise ConfigurationError(f"{path} cannot be read as TOML: {error}") from error
    if path.name == PROJECT_FILE:
        document = _project_table(document)
    return dict(_under_root(document, root)) if root else document


def _project_table(document: Mapping[str, Any]) -> dict[str, Any]:
    tool = document.get("tool")
    table = tool.get("acp") if isinstance(tool, Mapping) else None
    return dict(table) if isinstance(table, Mapping) else {}


def _under_root(document: Mapping[str, Any], root: str) -> Iterator[tuple[str, Any]]:
    for key, value in document.items():
        # The file stands for the root, which may still be spelled out.
        yield (key if canonical(key.split(".")[0]) == root else f"{root}.{key}"), value


def project_directory(module: str) -> Path | None:
    """The directory that holds the top-level module or package of an imported module; its parent if that is ``src``.

    Returns:
        None for a module that was made of no file.
    """
    top = sys.modules.get(module.partition(".")[0])
    places = [*getattr(top, "__path__", ()), getattr(top, "__file__", None)]
    place = next((Path(place).resolve() for place in places if place), None)
    if place is None:
        return None
    return place.parent.parent if place.parent.name == "src" else place.parent
