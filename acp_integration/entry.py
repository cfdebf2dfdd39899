"""The first moments of a process that serves an agent: its import path, its standard streams, then everything else.

Imports next to nothing, because whatever it imports is found on the path that it is about to mend.
"""

import gc
import sys
from collections.abc import Mapping, Sequence
from importlib import import_module
from types import MappingProxyType
from typing import Final

EXIT_USAGE: Final = 2
EXIT_INTERRUPTED: Final = 130
_NOTHING: Final[Mapping[str, str]] = MappingProxyType({})
_STDIO: Final = "stdio"
_HELP: Final = frozenset(("-h", "--help"))
_GUARD: Final = "acp_integration.transports.guard"


def enter(module: str, arguments: Sequence[str], extras: Mapping[str, str] = _NOTHING) -> int:
    """Run a command line as the whole of this process; returns the exit code.

    Args:
        module: what has a function ``start(arguments, streams)``, imported when the streams are safe.
        arguments: the words behind the program's name.
        extras: for each package that may not be installed, the extra that brings it.
    """
    mend_import_path(sys.path, arguments)
    try:
        serves = arguments[:1] == [_STDIO] and not _HELP.intersection(arguments)
        if serves:
            gc.disable()  # nothing of what is imported is garbage, and an editor waits; on again once it serves
        streams = import_module(_GUARD).guard_standard_streams() if serves else None
        code: int = import_module(module).start(arguments, streams)
    except KeyboardInterrupt:
        return EXIT_INTERRUPTED
    except ModuleNotFoundError as error:
        extra = extras.get(error.name or "")
        if extra is None:
            raise
        sys.stderr.write(f"{error.name} is not installed: pip install 'acp-integration[{extra}]'\n")
        return EXIT_USAGE
    return code


def mend_import_path(path: list[str], arguments: Sequence[str]) -> None:
    """Keep the folder that a process happens to be started in from shadowing a library.

    ``python -m`` looks there first. From now on it is looked at last, and not at all if ``--app-dir`` says where to
    look or if the interpreter was told so (``-P``).
    """
    if sys.flags.safe_path or not path:
        return
    here = path.pop(0)
    if not any(word == "--app-dir" or word.startswith("--app-dir=") for word in arguments):
        path.append(here)
