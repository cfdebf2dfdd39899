"""All the places that settings may come from, in order of precedence."""

import os
from collections.abc import Mapping
from typing import Any

import msgspec

from acp_integration.configuration.environment import environment_source, named_environment_source
from acp_integration.configuration.files import Files, expand, is_environment_file, read_toml
from acp_integration.configuration.keys import Path
from acp_integration.configuration.schema import Schema
from acp_integration.configuration.sources import Source, arguments_source, mapping_source


class Places(msgspec.Struct, frozen=True, kw_only=True):
    """Everything settings may come from.

    Attributes:
        arguments: keys given in code, without a prefix.
        environ: the environment, or None for that of this process.
        mapping: the framework's own settings.
        files: files and project directories.
    """

    arguments: Mapping[Any, Any] | None = None
    environ: Mapping[str, str] | None = None
    mapping: Mapping[Any, Any] | None = None
    files: Files = ()

    def sources(self, prefix: Path, schema: Schema, *, named: bool = False) -> list[Source]:
        """The sources, the strongest first."""
        variables = named_environment_source if named else environment_source
        paths = expand(self.files)
        return [
            arguments_source(self.arguments or {}),
            variables(os.environ if self.environ is None else self.environ, prefix, schema),
            *(
                variables(_read_environment_file(path), prefix, schema, str(path), file=True)
                for path in paths
                if is_environment_file(path)
            ),
            mapping_source(self.mapping or {}, prefix),
            *(
                mapping_source(read_toml(path, "".join(prefix[:1])), prefix, str(path), file=True)
                for path in paths
                if not is_environment_file(path)
            ),
        ]


def _read_environment_file(path: os.PathLike[str]) -> dict[str, str]:
    from dotenv import dotenv_values  # noqa: PLC0415  # most starts read no such file

    # Without interpolation: a file must not pull other variables of the process into a setting.
    return {name: value for name, value in dotenv_values(path, interpolate=False).items() if value is not None}
