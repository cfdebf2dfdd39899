"""Server-sent events: how a mailbox is written to the GET request that reads it."""

import logging
from collections.abc import Callable, Iterable
from typing import Final

import anyio
from anyio.lowlevel import checkpoint

from acp_integration.endpoint.exchange import Exchange
from acp_integration.endpoint.ledger import Event
from acp_integration.endpoint.mailbox import Mailbox, Reader

logger = logging.getLogger(__name__)

CONNECTED: Final = b": connected\n\n"
KEEP_ALIVE: Final = b": keep-alive\n\n"
SHUTTING_DOWN: Final = b": shutting down\n\n"

STALL_LIMIT: Final = 60.0
"""Seconds that one write may take before the reader counts as gone and its events wait for the next one."""

HEADERS: Final = (
    ("content-type", "text/event-stream"),
    ("cache-control", "no-cache"),
    ("x-accel-buffering", "no"),
)


_LINE_ENDS: Final = (("\u0085".encode(), rb"\u0085"), ("\u2028".encode(), rb"\u2028"), ("\u2029".encode(), rb"\u2029"))


def encode(events: Iterable[Event]) -> bytes:
    """The events as they stand in the stream.

    What ends a line of text, but no line of an event stream, is written escaped: many clients take one for the other.
    """
    chunk = b"".join(b"id: %d\ndata: %b\n\n" % event for event in events)
    for character, escaped in _LINE_ENDS:
        chunk = chunk.replace(character, escaped)
    return chunk


class EventStream:
    """One GET request that reads a mailbox until it leaves, is taken over, or the mailbox ends."""

    def __init__(
        self, exchange: Exchange, mailbox: Mailbox, keep_alive: float | None, closing: Callable[[], bool]
    ) -> None:
        self._exchange = exchange
        self._mailbox = mailbox
        self._keep_alive = keep_alive
        self._closing = closing
        self._gone = False

    async def serve(self, headers: Iterable[tuple[str, str]], last_id: int | None) -> None:
        """Take the mailbox over and write it, until either side ends."""
        reader = self._mailbox.attach()
        try:
            with reader.scope:
                await self._exchange.start(200, (*HEADERS, *headers))
                await self._write_while_read(reader, last_id)
        finally:
            self._mailbox.leave(reader)

    async def _write_while_read(self, reader: Reader, last_id: int | None) -> None:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._watch, tasks.cancel_scope)
            await self._send(CONNECTED)
            async with self._mailbox.writing(reader):
                if last_id is not None and not reader.dismissed:
                    self._mailbox.resume_after(last_id)
                await self._pump(reader)
            if not self._gone:
                await self._send(SHUTTING_DOWN if self._closing() else b"", last=True)
            tasks.cancel_scope.cancel()

    async def _watch(self, scope: anyio.CancelScope) -> None:
        await self._exchange.disconnected()
        self._gone = True
        scope.cancel()

    async def _pump(self, reader: Reader) -> None:
        while not reader.dismissed and not self._gone:
            events = self._mailbox.batch()
            if events:
                await self._hand_over(events)
            elif self._mailbox.ended:
                return
            else:
                await self._idle(reader)

    async def _hand_over(self, events: list[Event]) -> None:
        """Write events and commit them; what may not have reached the server stays for the next reader."""
        await self._send(encode(events))
        # A server drops what is sent after the peer hung up: let the watcher see that first.
        await checkpoint()
        if not self._gone:
            self._mailbox.commit(len(events))

    async def _idle(self, reader: Reader) -> None:
        wait = self._mailbox.patience(self._keep_alive)
        with anyio.move_on_after(wait) as timer:
            await reader.woken()
        if timer.cancelled_caught and not self._mailbox.ended:
            await self._send(KEEP_ALIVE)

    async def _send(self, chunk: bytes, *, last: bool = False) -> None:
        with anyio.move_on_after(STALL_LIMIT) as stall:
            try:
                await self._exchange.write(chunk, last=last)
            except Exception:  # each server has its own error for a peer that left
                logger.debug("An event stream broke while it was written", exc_info=True)
                self._gone = True
        if stall.cancelled_caught:
            logger.info("An event stream made no progress for %s s and was detached", STALL_LIMIT)
            self._gone = True
