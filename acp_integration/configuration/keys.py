"""How a key is spelled: dotted in documentation and mappings, upper case with underscores in the environment."""

from collections.abc import Iterable

Path = tuple[str, ...]


def canonical(segment: str) -> str:
    """One segment of a key in the documented spelling; kebab-case, snake_case and upper case are the same key."""
    return segment.strip().lower().replace("_", "-")


def canonical_path(segments: Iterable[str]) -> Path:
    """Several segments in the documented spelling."""
    return tuple(canonical(segment) for segment in segments)


def prefix_path(prefix: str) -> Path:
    """The segments of a prefix such as ``acp.agent``; a trailing dot changes nothing, an empty prefix has none."""
    trimmed = prefix.strip().removesuffix(".")
    return canonical_path(trimmed.split(".")) if trimmed else ()


def dotted(*paths: Path) -> str:
    """The documented spelling of a key."""
    return ".".join(segment for path in paths for segment in path)


def environment_name(*paths: Path) -> str:
    """The name of the environment variable that sets a key."""
    return "_".join(segment for path in paths for segment in path).replace("-", "_").upper()
