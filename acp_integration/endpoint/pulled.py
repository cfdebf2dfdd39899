"""The endpoint's answer as something to pull from, for a framework whose views return responses."""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from typing import TYPE_CHECKING, Any, Final

import anyio

from acp_integration.endpoint.exchange import Message, Scope
from acp_integration.endpoint.gate import Answer
from acp_integration.owned import OwnedTask

if TYPE_CHECKING:
    from acp_integration.endpoint.asgi import AcpEndpoint

_CHUNK: Final = 64 * 1024


class PulledAnswer:
    """One request at the endpoint, which is served in a task of its own until `end`.

    Args:
        endpoint: serves the request.
        scope: the request.
        read: reads at most so many bytes of its body, which is here already.
    """

    def __init__(self, endpoint: "AcpEndpoint", scope: Scope, read: Callable[[int], bytes]) -> None:
        self._endpoint = endpoint
        self._scope = scope
        self._read = read
        self._body_read = False
        self._gone = anyio.Event()
        self._messages: asyncio.Queue[Mapping[str, Any] | None] = asyncio.Queue(maxsize=1)
        self._task = OwnedTask("acp-request")

    async def start(self) -> Answer:
        """Let the endpoint serve, and wait for status and headers."""
        answer = Answer()
        self._task.start(self._run)
        message = await self._messages.get()
        if message is not None:
            await answer.record(message)
        return answer

    async def pieces(self) -> AsyncIterator[bytes]:
        """The parts of the body as they come; leaving the iteration ends the request."""
        try:
            more = True
            while more and (message := await self._messages.get()) is not None:
                more = message.get("more_body", False)
                if body := message.get("body", b""):
                    yield body
        finally:
            self.end()

    def end(self) -> None:
        """Tell the endpoint that the client is gone."""
        self._gone.set()
        self._task.cancel()

    async def _run(self) -> None:
        try:
            await self._endpoint(self._scope, self._receive, self._messages.put)
            await self._messages.put(None)
        except BaseException:
            if self._messages.full():
                self._messages.get_nowait()
            self._messages.put_nowait(None)
            raise

    async def _receive(self) -> Message:
        if self._body_read:
            await self._gone.wait()
            return {"type": "http.disconnect"}
        body = self._read(_CHUNK)
        self._body_read = len(body) < _CHUNK
        return {"type": "http.request", "body": body, "more_body": not self._body_read}
