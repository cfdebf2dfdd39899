"""HTTP without the wrapper: the endpoint's answer as a Django response; every open stream holds a thread."""

import asyncio
from collections.abc import AsyncIterator, MutableMapping
from contextvars import Context
from typing import Any

import anyio
from asgiref.sync import sync_to_async
from django.http import HttpRequest, HttpResponse, StreamingHttpResponse
from django.http.response import HttpResponseBase

from acp_django.executor import close_connections
from acp_django.gate import Answer, Message, Scope
from acp_django.serving import shared_endpoint
from acp_integration.endpoint import AcpEndpoint

_CHUNK = 64 * 1024


async def serve_in_view(request: HttpRequest, scope: Scope) -> HttpResponseBase:
    """Serve a request that Django has read already; an event stream is passed on piece by piece."""
    await sync_to_async(close_connections)()
    exchange = _Exchange(request)
    query: str | bytes = scope.get("query_string", b"")  # Django's test client writes it as text
    exchange.start(shared_endpoint(), {**scope, "query_string": query.encode() if isinstance(query, str) else query})
    answer = Answer()
    try:
        await answer.record(await exchange.next_message())
        if not answer.header(b"content-type").startswith("text/event-stream"):
            async for piece in exchange.pieces():
                answer.body += piece
            return _described(HttpResponse(answer.body), answer)
    except BaseException:
        exchange.end()
        raise
    return _described(_EventStream(exchange), answer)


class _Exchange:
    """One request at the endpoint, which runs in a task of its own until the response is closed."""

    def __init__(self, request: HttpRequest) -> None:
        self._request = request
        self._loop = asyncio.get_running_loop()
        self._gone = anyio.Event()
        self._read = False
        self._messages: asyncio.Queue[Message | None] = asyncio.Queue(maxsize=1)
        self._task: asyncio.Task[None] | None = None

    def start(self, endpoint: AcpEndpoint, scope: Scope) -> None:
        # The view returns before the stream ends, so no task group can own this; the response does, and a fresh context
        # keeps the view's thread and request out of it.
        self._task = asyncio.create_task(self._run(endpoint, scope), context=Context())  # noqa: TID251

    async def next_message(self) -> Message:
        message = await self._messages.get()
        if message is None:
            assert self._task is not None
            await self._task
            raise RuntimeError("The endpoint ended without an answer")
        return message

    async def pieces(self) -> AsyncIterator[bytes]:
        try:
            more = True
            while more and (message := await self._messages.get()) is not None:
                more = message.get("more_body", False)
                if body := message.get("body", b""):
                    yield body
        finally:
            self.end()

    def end(self) -> None:
        """Tell the endpoint that the client is gone, and let it finish."""
        self._gone.set()
        if self._task is not None:
            self._task.cancel()

    def end_soon(self) -> None:
        """The same from any thread."""
        self._loop.call_soon_threadsafe(self.end)

    async def _run(self, endpoint: AcpEndpoint, scope: Scope) -> None:
        try:
            await endpoint(scope, self._receive, self._messages.put)
            await self._messages.put(None)
        except BaseException:
            if self._messages.full():
                self._messages.get_nowait()
            self._messages.put_nowait(None)
            raise

    async def _receive(self) -> MutableMapping[str, Any]:
        if self._read:
            await self._gone.wait()
            return {"type": "http.disconnect"}
        body = self._request.read(_CHUNK)
        self._read = len(body) < _CHUNK
        return {"type": "http.request", "body": body, "more_body": not self._read}


class _EventStream(StreamingHttpResponse):
    """An event stream whose exchange ends with it, also when nobody ever reads it."""

    def __init__(self, exchange: _Exchange) -> None:
        super().__init__(exchange.pieces())
        self._exchange = exchange

    def close(self) -> None:
        super().close()
        self._exchange.end_soon()


def _described(response: Any, answer: Answer) -> HttpResponseBase:
    response.status_code = answer.status
    for name, value in answer.headers:
        response[name.decode("latin-1")] = value.decode("latin-1")
    if response.streaming:
        response["Content-Encoding"] = "identity"  # compression would hold events back
    found: HttpResponseBase = response
    return found
