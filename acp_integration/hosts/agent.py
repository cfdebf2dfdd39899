"""The host of an agent on one transport."""

import asyncio
import logging
import threading
from collections.abc import Callable
from types import TracebackType
from typing import Final, Protocol, Self

import anyio

from acp_integration.hosts.completion import Completion, Once, hold
from acp_integration.hosts.stopping import stop_within, stop_within_blocking
from acp_integration.owned import OwnedTask

logger = logging.getLogger(__name__)

STOP_TIMEOUT: Final = 30.0
"""How long leaving ``async with`` waits for a graceful stop, in seconds."""
UNWIND_TIMEOUT: Final = 1.0
"""How long `AcpAgentHost.stop` waits for an agent that it closed at once, in seconds."""
_AGENT: Final = "The ACP agent"


class ServedAgent(Protocol):
    """An agent on a transport."""

    async def serve(self) -> None:
        """Serve until the transport has ended; called once."""
        ...

    def stop(self) -> None:
        """Let `serve` return soon; called on the loop, and only while `serve` runs."""
        ...


class AcpAgentHost:
    """Serves an agent on one transport, such as stdio, in a task of its own until the transport ends or it is stopped.

    Args:
        agent: what is served.
        on_transport_end: called once if the transport ends by itself, also when it had ended before; never because of
            a stop. It runs on a thread of its own, so it may block, and the process does not exit before it returns.
    """

    def __init__(self, agent: ServedAgent, on_transport_end: Callable[[], object] | None = None) -> None:
        self._agent = agent
        self._on_transport_end = on_transport_end
        self._loop: asyncio.AbstractEventLoop | None = None
        self._task: OwnedTask | None = None
        self._starting, self._stopping, self._holding = Once(), Once(), Once()
        self._started, self._stopped, self._ended = Completion(), Completion(), Completion()
        self._serving = False

    async def start(self) -> None:
        """Start serving, and return once it runs; serves nothing when called again or after a stop."""
        if self._starting.claim():
            # A stop claims, then reads the loop; `_run` comes after the loop is set and looks for a claim.
            self._task = OwnedTask("acp-agent-host")
            self._loop = asyncio.get_running_loop()
            self._task.start(self._run)
        await self._started

    def stop_gracefully(self) -> Completion:
        """Ask the agent to stop, without waiting, from wherever; every call returns the same object."""
        if self._stopping.claim():
            if self._loop is None:
                self._finish()
            else:
                self._on_loop(self._stop_agent)
        return self._stopped

    async def stop(self, timeout: float) -> None:
        """Stop gracefully for at most so many seconds, then at once; at once also when the caller is cancelled.

        Called by the agent itself it only asks, because waiting for its own end would take the whole time.
        """
        if self._task is not None and self._task.inside:
            self.stop_blocking(timeout)
            return
        await stop_within(timeout, self.stop_gracefully(), self._close_now, _AGENT)
        with anyio.move_on_after(UNWIND_TIMEOUT):
            await self._ended

    def stop_blocking(self, timeout: float) -> None:
        """Stop from another thread or from ``atexit``; on the loop's thread the bound is kept without waiting."""
        graceful = self.stop_gracefully()
        if self._loop is not None and _running_loop() is self._loop:
            self._on_loop(self._close_later, timeout)
        else:
            stop_within_blocking(timeout, graceful, self._close_now, _AGENT)

    def termination(self) -> Completion:
        """What ends when the agent is no longer served, for whatever reason."""
        return self._ended

    def port(self) -> int | None:
        """None: one transport has no port."""
        return None

    def hold_until_termination(self) -> None:
        """Keep the process alive until the end with one thread of its own; returns at once."""
        if self._holding.claim():
            hold(self._ended, "acp-agent-await")

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.stop(STOP_TIMEOUT)

    async def _run(self) -> None:
        self._started.complete()
        try:
            if not self._stopping.claimed:
                self._serving = True
                await self._agent.serve()
        except Exception:
            logger.warning("The transport of the ACP agent failed", exc_info=True)
        except BaseException:
            # The loop is being torn down: a stop from outside, no end of the transport.
            self._stopping.claim()
            raise
        finally:
            self._serving = False
            self._finish()

    def _finish(self) -> None:
        if not self._stopping.claimed and self._on_transport_end is not None:
            # A thread that is no daemon: the action may end the process, and must not be cut short by its end.
            threading.Thread(target=self._act_on_end, name="acp-agent-transport-end", daemon=False).start()
        self._ended.complete()
        self._stopped.complete()

    def _act_on_end(self) -> None:
        if self._stopping.claimed or self._on_transport_end is None:
            return
        try:
            self._on_transport_end()
        except Exception:
            logger.exception("The action at the end of the transport failed")

    def _stop_agent(self) -> None:
        if not self._serving:
            return
        try:
            self._agent.stop()
        except Exception as error:  # noqa: BLE001  # whoever waits for the stop is told, and closes at once
            self._stopped.fail(error)

    def _close_later(self, timeout: float) -> None:
        asyncio.get_running_loop().call_later(timeout, self._cancel)

    def _close_now(self) -> None:
        self._on_loop(self._cancel)

    def _cancel(self) -> None:
        if self._task is not None:
            self._task.cancel()

    def _on_loop(self, call: Callable[..., object], *args: object) -> None:
        try:
            if self._loop is not None:
                self._loop.call_soon_threadsafe(call, *args)
        except RuntimeError:
            # The loop is closed, and with it went the task.
            self._finish()


def _running_loop() -> asyncio.AbstractEventLoop | None:
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None
