"""`python -m acp_django`: guards standard input and output before the project's settings are imported."""

import sys

from acp_integration.transports.guard import guard_standard_streams

streams = guard_standard_streams() if sys.argv[1:2] == ["stdio"] else None

from acp_django.program import run  # noqa: E402  # the guard comes first
from acp_django.project import set_up  # noqa: E402  # the guard comes first
from acp_integration.errors import ConfigurationError  # noqa: E402  # the guard comes first


def start(name: str, arguments: list[str]) -> int:
    """Set the project up and run one command; returns the exit code."""
    try:
        set_up(arguments)
    except ConfigurationError as error:
        sys.stderr.write(f"{name}: {error}\n")
        return 2
    return run(name, arguments, streams)


if __name__ == "__main__":
    sys.exit(start("python -m acp_django", sys.argv[1:]))
