"""Running the lifespan of an ASGI application where no server does."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import anyio

from acp_integration.endpoint.exchange import Message, Receive, Scope, Send

Application = Callable[[Scope, Receive, Send], Awaitable[None]]


@asynccontextmanager
async def lifespan(app: Application) -> AsyncIterator[dict[str, Any]]:
    """Run an application's lifespan around the block, which gets the state that it yielded.

    Raises:
        Exception: whatever the application's start or end raised.
    """
    run = _Lifespan(app)
    try:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(run.main)
            await run.started.wait()
            if run.failure is not None:
                raise run.failure
            try:
                yield run.state
            finally:
                run.stopping.set()
    except ExceptionGroup as group:
        raise group.exceptions[0] from None  # whoever starts the application reads the error itself


class _Lifespan:
    """The server's side of the lifespan protocol."""

    def __init__(self, app: Application) -> None:
        self.state: dict[str, Any] = {}
        self.started = anyio.Event()
        self.stopping = anyio.Event()
        self.failure: Exception | None = None
        self._app = app
        self._messages = iter(("lifespan.startup", "lifespan.shutdown"))
        self._scope = anyio.CancelScope()

    async def main(self) -> None:
        scope = {"type": "lifespan", "asgi": {"version": "3.0", "spec_version": "2.0"}, "state": self.state}
        try:
            with self._scope:
                await self._app(scope, self._receive, self._send)
        except Exception as error:
            if self.started.is_set():
                raise
            self.failure = error
        finally:
            self.started.set()

    async def _receive(self) -> Message:
        if self.started.is_set():
            await self.stopping.wait()
        return {"type": next(self._messages)}

    async def _send(self, message: Message) -> None:
        if message["type"] == "lifespan.startup.complete":
            self._scope.shield = True  # what has started gets to end in order
            self.started.set()
