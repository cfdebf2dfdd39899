"""What every command takes besides its own: where to import from, what to record, and where to log."""

import argparse
import logging
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from acp_integration.errors import ConfigurationError

_LEVELS: Final = ("debug", "info", "warning", "error")
_FORMAT: Final = "%(asctime)s %(levelname)s %(name)s: %(message)s"


def add_common_arguments(command: argparse.ArgumentParser) -> None:
    """What every command takes."""
    command.add_argument(
        "--app-dir", metavar="DIR", help="where the target is imported from (default: this directory, last)"
    )
    command.add_argument("--trace", metavar="FILE", help="append every frame to this file, secrets masked")
    command.add_argument(
        "--log-level", default="warning", type=str.lower, choices=_LEVELS, metavar="LEVEL", help=", ".join(_LEVELS)
    )
    command.add_argument("--log-file", metavar="FILE", help="log to this file: editors hide standard error")


def common_words(options: argparse.Namespace) -> list[str]:
    """What a command line that is run elsewhere needs to record and log the same."""
    words = [] if options.log_level == "warning" else ["--log-level", options.log_level]
    for option, path in (("--trace", options.trace), ("--log-file", options.log_file)):
        words += [] if path is None else [option, os.path.abspath(path)]
    return words


@contextmanager
def surroundings(options: argparse.Namespace) -> Iterator[None]:
    """Set up what the options ask for; the logging lasts as long as the block.

    Raises:
        ConfigurationError: if a file cannot be written or a directory is none.
    """
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")  # the locale decides how text looks, not whether it comes
    _import_from(options.app_dir)
    for option, path in (("--trace", options.trace), ("--log-file", options.log_file)):
        _require_writable(option, path)
    handler = logging.FileHandler(options.log_file, encoding="utf-8") if options.log_file else logging.StreamHandler()
    handler.setFormatter(logging.Formatter(_FORMAT))
    logger = logging.getLogger("acp_integration")
    logger.addHandler(handler)
    logger.setLevel(options.log_level.upper())
    try:
        yield
    finally:
        logger.removeHandler(handler)
        handler.close()


def _import_from(folder: str | None) -> None:
    if folder is None:
        return
    if not Path(folder).is_dir():
        raise ConfigurationError(f"--app-dir {folder} is not a directory")
    sys.path.insert(0, os.path.abspath(folder))


def _require_writable(option: str, path: str | None) -> None:
    if path is None:
        return
    try:
        # What an agent and its client say to each other is nobody else's.
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600))
    except OSError as error:
        raise ConfigurationError(f"{option} {path} cannot be written: {error.strerror}") from error
