"""How a command says that it failed: what went wrong and where, in one line."""

import importlib
import os
import sys
import traceback
from pathlib import Path
from typing import Final

import acp_integration
from acp_integration.discovery import NO_MODULE
from acp_integration.entry import EXIT_USAGE
from acp_integration.errors import AcpError, ConfigurationError, DiscoveryError

EXIT_FAILED: Final = 1
# The way to the application's code, which is not where it failed.
_ON_THE_WAY: Final = (
    "<frozen",
    *(str(Path(module.__file__ or "").parent) + os.sep for module in (acp_integration, importlib)),
)


def say_failure(name: str, error: AcpError) -> int:
    """Say it on standard error; returns the exit code: 2 for what the user can correct, 1 for the rest.

    Args:
        name: the command that failed.
        error: why.
    """
    print(f"{name}: {error}{_place_of(error.__cause__)}{_hint_of(error)}", file=sys.stderr)
    return EXIT_USAGE if isinstance(error, ConfigurationError | DiscoveryError) else EXIT_FAILED


def _hint_of(error: AcpError) -> str:
    missing = isinstance(error, DiscoveryError) and isinstance(error.__cause__, ModuleNotFoundError)
    return ": --app-dir says in which folder it lies" if missing and str(error).startswith(NO_MODULE) else ""


def _place_of(cause: BaseException | None) -> str:
    """Where the application's own code raised what is behind an error; nothing if none of it did."""
    frames = traceback.extract_tb(cause.__traceback__) if cause is not None else []
    theirs = [frame for frame in frames if not frame.filename.startswith(_ON_THE_WAY)]
    return f" ({theirs[-1].filename}, line {theirs[-1].lineno})" if theirs else ""
