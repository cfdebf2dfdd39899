"""HTTP without the wrapper: the endpoint's answer as a Django response; every open stream holds a thread."""

import asyncio
from typing import Any

from asgiref.sync import sync_to_async
from django.http import HttpRequest, HttpResponse, StreamingHttpResponse
from django.http.response import HttpResponseBase

from acp_django.executor import close_connections
from acp_django.gate import Scope
from acp_django.serving import serving
from acp_integration.endpoint.gate import Answer
from acp_integration.endpoint.pulled import PulledAnswer


async def serve_in_view(request: HttpRequest, scope: Scope) -> HttpResponseBase:
    """Serve a request that Django has read already; an event stream is passed on piece by piece."""
    await sync_to_async(close_connections)()
    query: str | bytes = scope.get("query_string", b"")  # Django's test client writes it as text
    scope = {**scope, "query_string": query.encode() if isinstance(query, str) else query}
    pulled = PulledAnswer(serving().endpoint, scope, request.read)
    try:
        answer = await pulled.start()
        if answer.header(b"content-type").startswith("text/event-stream"):
            return _described(_EventStream(pulled), answer)
        return _described(HttpResponse(b"".join([piece async for piece in pulled.pieces()])), answer)
    except BaseException:
        pulled.end()
        raise


class _EventStream(StreamingHttpResponse):
    """An event stream that ends with its response, also when nobody ever reads it."""

    def __init__(self, pulled: PulledAnswer) -> None:
        super().__init__(pulled.pieces())
        self["Content-Encoding"] = "identity"  # compression would hold events back
        self._loop = asyncio.get_running_loop()
        self._pulled = pulled

    def close(self) -> None:
        """Called on a thread of Django's."""
        super().close()
        self._loop.call_soon_threadsafe(self._pulled.end)


def _described(response: Any, answer: Answer) -> HttpResponseBase:
    response.status_code = answer.status
    for name, value in answer.headers:
        response[name.decode("latin-1")] = value.decode("latin-1")
    found: HttpResponseBase = response
    return found
