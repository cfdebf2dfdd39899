"""Running the lifespan of an application where no server does."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import anyio
from starlette.types import ASGIApp, Message


@asynccontextmanager
async def lifespan(app: ASGIApp) -> AsyncIterator[dict[str, Any]]:
    """Run an ASGI application's lifespan around the block, which gets the state it yielded.

    Raises:
        Exception: whatever the application's start or end raised.
    """
    run = _Lifespan(app)
    try:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(run.main)
            await run.started.wait()
            try:
                yield run.state
            finally:
                run.stopping.set()
    except ExceptionGroup as group:
        raise group.exceptions[0] from None  # whoever starts the app reads the error itself


class _Lifespan:
    """The server's side of the lifespan protocol."""

    def __init__(self, app: ASGIApp) -> None:
        self.state: dict[str, Any] = {}
        self.started = anyio.Event()
        self.stopping = anyio.Event()
        self._app = app
        self._told_to_start = False

    async def main(self) -> None:
        try:
            with anyio.CancelScope(shield=True):
                scope = {"type": "lifespan", "asgi": {"version": "3.0", "spec_version": "2.0"}, "state": self.state}
                await self._app(scope, self._receive, self._send)
        finally:
            self.started.set()

    async def _receive(self) -> Message:
        if not self._told_to_start:
            self._told_to_start = True
            return {"type": "lifespan.startup"}
        await self.stopping.wait()
        return {"type": "lifespan.shutdown"}

    async def _send(self, message: Message) -> None:
        if message["type"] == "lifespan.startup.complete":
            self.started.set()
