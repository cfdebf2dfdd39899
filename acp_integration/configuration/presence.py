"""Whether anything is set at all, found out without making settings: most starts have none."""

import os
from collections.abc import Mapping
from typing import Any

from acp_integration.configuration.files import Files, expand, is_environment_file, read_toml
from acp_integration.configuration.keys import environment_name, prefix_path


def anything_set(
    mapping: Mapping[Any, Any] | None = None,
    *,
    prefix: str = "acp.agent",
    environ: Mapping[str, str] | None = None,
    files: Files = (),
) -> bool:
    """Whether a source may hold a key under the prefix: False means that reading them would give only defaults.

    Args:
        mapping: the framework's own settings.
        prefix: the prefix of the keys.
        environ: the environment, or None for that of this process.
        files: files and project directories.

    Raises:
        ConfigurationError: if a file cannot be read.
    """
    start = environment_name(prefix_path(prefix))
    variables = os.environ if environ is None else environ
    if mapping or (start and any(name.startswith(start) for name in variables)):
        return True
    root = prefix_path(prefix)[:1]
    return any(is_environment_file(path) or read_toml(path, "".join(root)) for path in expand(files))
