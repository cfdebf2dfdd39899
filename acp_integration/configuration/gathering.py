"""Several readings of settings as one: whoever mistyped in two places hears of both."""

from collections.abc import Callable
from typing import Any

from acp_integration.errors import ConfigurationError


def gather(*readings: Callable[[], Any]) -> list[Any]:
    """What each reading gives.

    Raises:
        ConfigurationError: with the problems of all readings, each once.
    """
    results, errors = [], []
    for read in readings:
        try:
            results.append(read())
        except ConfigurationError as error:
            errors.append(error)
    if len(errors) == 1:
        raise errors[0]
    if errors:
        raise ConfigurationError(*dict.fromkeys(problem for error in errors for problem in error.problems))
    return results
