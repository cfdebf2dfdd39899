"""Serving one agent on standard input and output, from the first byte to the exit code."""

import asyncio
import gc
import logging
import os
import signal
import sys
import threading
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from importlib import import_module
from typing import Final

import anyio

from acp_integration.cli.program import Served
from acp_integration.runtime import AgentRuntime
from acp_integration.transports.guard import StandardStreams
from acp_integration.transports.selection import require_served
from acp_integration.transports.stdio import stdio_transport
from acp_integration.transports.transport import Transport

logger = logging.getLogger(__name__)

EXIT_SECONDS: Final = 1.0
"""How long the interpreter may take to end once everything is answered and closed; a blocked thread could hold it."""
INTERRUPTED: Final = 130
_YOUNG_OBJECTS: Final = 10_000
"""Objects between two looks at the youngest for cycles of garbage; the interpreter looks after 700 to 2,000."""
_KILLED_BY: Final = 128
_SIGNALS: Final = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)

Opening = Callable[[], AbstractAsyncContextManager[Served]]


def serve_stdio(streams: StandardStreams, opening: Opening, *, trace: str | None = None) -> int:
    """Serve an agent until the client is gone; returns the exit code of the process, which has to end with it.

    Args:
        streams: what `guard_standard_streams` took.
        opening: opens whatever the agent lives in, such as an application's lifespan.
        trace: a file that gets every frame.
    """
    server = _Server(streams, opening, trace)
    with asyncio.Runner() as runner:
        code = runner.run(server.run())
        _leave_within(EXIT_SECONDS, code)
    return code


class _Server:
    def __init__(self, streams: StandardStreams, opening: Opening, trace: str | None) -> None:
        self._streams = streams
        self._opening = opening
        self._trace = trace
        self._runtime: AgentRuntime | None = None
        self._signal: signal.Signals | None = None
        self._main: anyio.CancelScope | None = None

    async def run(self) -> int:
        loop = asyncio.get_running_loop()
        for number in _SIGNALS:
            loop.add_signal_handler(number, self._stop, number)
        with anyio.CancelScope() as self._main:
            async with self._opening() as served:
                require_served(served.settings, "stdio")
                self._runtime = served.factory(self._transport(served), served.caller)
                _collect_rarely()
                gc.enable()
                await self._runtime.serve()
        return INTERRUPTED if self._signal is signal.SIGINT else 0

    def _transport(self, served: Served) -> Transport:
        transport = stdio_transport(self._streams, served.options.max_message_size)
        if self._trace is None:
            return transport
        traced: Transport = import_module("acp_integration.transports.trace").TracedTransport(transport, self._trace)
        return traced

    def _stop(self, number: signal.Signals) -> None:
        if self._signal is not None:
            _leave(_KILLED_BY + number)  # somebody is tired of waiting for a clean-up that does not end
        self._signal = number
        if self._runtime is not None:
            self._runtime.stop()
        elif self._main is not None:
            self._main.cancel()  # the application is still starting


def _collect_rarely() -> None:
    """Look for cycles of garbage less often: a call leaves none, and what was imported stays."""
    gc.freeze()
    gc.set_threshold(_YOUNG_OBJECTS)


def _leave_within(seconds: float, code: int) -> None:
    """End the process by force if a thread that nobody waits for any more holds it."""
    timer = threading.Timer(seconds, _leave, (code,))
    timer.daemon = True
    timer.start()


def _leave(code: int) -> None:
    logger.debug("A thread held the process: left it behind")
    for stream in (sys.stdout, sys.stderr):
        if stream is not None:
            stream.flush()
    os._exit(code)
