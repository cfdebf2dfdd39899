"""What all settings have in common: they cannot be changed, refuse unknown names and pass on only what is set."""

from collections.abc import Mapping
from datetime import timedelta
from typing import Any, ClassVar, Self, TypeVar, get_args

import msgspec

from acp_integration.configuration.fields import Section
from acp_integration.configuration.files import Files
from acp_integration.configuration.loading import Loaded, read, read_mapping
from acp_integration.configuration.places import Places

Options = TypeVar("Options", bound=msgspec.Struct)


class Settings(Section, frozen=True, kw_only=True):
    """A settings object: made from arguments alone, or read by one of the class methods."""

    default_prefix: ClassVar[str] = ""
    defaults: ClassVar[tuple[Any, ...]] = ()
    """The options that hold what is in effect for an unset key."""

    @classmethod
    def from_mapping(cls, mapping: Mapping[str, Any], prefix: str | None = None) -> Self:
        """Read one mapping, nothing else looked at.

        Args:
            mapping: nested, dotted or both; kebab-case, snake_case and upper case are the same key.
            prefix: what stands before the keys, by default that of the class; empty for bare keys.

        Raises:
            ConfigurationError: with one line for every bad key; an `UnknownKey` if all of them are unknown.
        """
        return read_mapping(cls, mapping, cls.default_prefix if prefix is None else prefix)

    @classmethod
    def load(
        cls,
        mapping: Mapping[str, Any] | None = None,
        *,
        prefix: str | None = None,
        environ: Mapping[str, str] | None = None,
        files: Files = (),
        arguments: Mapping[str, Any] | None = None,
    ) -> Self:
        """Read every source: arguments win over the environment, that over the mapping, that over files.

        Args:
            mapping: the framework's own settings, as `from_mapping` reads them.
            prefix: what stands before the keys, by default that of the class.
            environ: the environment, or None for that of this process.
            files: TOML files, ``.env`` files (which follow the environment), or project directories, whose
                ``acp.toml`` and ``pyproject.toml`` are read; the first one wins.
            arguments: keys without the prefix.

        Raises:
            ConfigurationError: with one line for every bad key; an `UnknownKey` if all of them are unknown.
        """
        loaded = cls.load_with_origins(mapping, prefix=prefix, environ=environ, files=files, arguments=arguments)
        return loaded.settings

    @classmethod
    def load_with_origins(
        cls,
        mapping: Mapping[str, Any] | None = None,
        *,
        prefix: str | None = None,
        environ: Mapping[str, str] | None = None,
        files: Files = (),
        arguments: Mapping[str, Any] | None = None,
    ) -> Loaded[Self]:
        """The same as `load`, with the place each key came from."""
        places = Places(arguments=arguments, environ=environ, mapping=mapping, files=files)
        return read(cls, places, cls.default_prefix if prefix is None else prefix)


def options_of(options: type[Options], *sections: Section) -> Options:
    """The options that some settings ask for: only what is set is passed on, so that each default has one home.

    Args:
        options: a class of options.
        sections: where to look for each of its fields, the first one that has it set deciding.
    """
    chosen = {}
    for field in msgspec.structs.fields(options):
        values = (getattr(section, field.name, None) for section in sections)
        value = next((value for value in values if value is not None), None)
        if value is not None:
            chosen[field.name] = _plain(value, type(None) in get_args(field.type))
    return options(**chosen)


def _plain(value: Any, may_be_unlimited: bool) -> Any:
    if not isinstance(value, timedelta):
        return value
    return None if may_be_unlimited and not value else value.total_seconds()
