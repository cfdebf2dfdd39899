"""A process that an autoreloader starts is killed at every change of a file, in the middle of a conversation."""

import os
from typing import Final

from acp_integration.errors import ConfigurationError

_SIGNS: Final = ("WATCHFILES_CHANGES", "WATCHFILES_COMMAND", "WERKZEUG_RUN_MAIN", "RUN_MAIN")


def refuse_autoreloader() -> None:
    """Refuse to serve standard input and output under an autoreloader.

    Raises:
        ConfigurationError: naming the variable by which the autoreloader was recognised.
    """
    for name in _SIGNS:
        if name in os.environ:
            raise ConfigurationError(
                f"An autoreloader ({name} is set) cannot restart an agent that an editor talks to: start it without one"
            )
