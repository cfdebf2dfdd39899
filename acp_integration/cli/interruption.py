"""Running a command that a person may interrupt: one Ctrl-C ends it in order, without a traceback."""

import asyncio
import signal
from argparse import Namespace
from collections.abc import Callable, Coroutine
from typing import Any, Final

import anyio

from acp_integration.cli.program import Program
from acp_integration.errors import AcpError

INTERRUPTED: Final = 130


def run_interruptibly(
    command: Callable[[Program, Namespace], Coroutine[Any, Any, int]], program: Program, options: Namespace
) -> int:
    """Run an async command; returns its exit code, or 130 if it was interrupted."""
    with asyncio.Runner() as runner:
        return runner.run(_run(command, program, options))


async def _run(
    command: Callable[[Program, Namespace], Coroutine[Any, Any, int]], program: Program, options: Namespace
) -> int:
    code = INTERRUPTED
    loop = asyncio.get_running_loop()
    with anyio.CancelScope() as scope:
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, scope.cancel)
        try:
            code = await command(program, options)
        except* AcpError as group:
            raise _first(group) from None
    return code


def _first(group: BaseExceptionGroup[Any]) -> BaseException:
    error: BaseException = group
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error
