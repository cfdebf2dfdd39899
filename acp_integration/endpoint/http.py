"""Streamable HTTP: POST brings a message in, GET reads an event stream, DELETE ends a connection."""

import logging
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Final

import anyio

from acp_integration import jsonrpc
from acp_integration.caller import Caller
from acp_integration.endpoint.admission import opened_by
from acp_integration.endpoint.connections import Served
from acp_integration.endpoint.eventstream import EventStream
from acp_integration.endpoint.exchange import JSON, Exchange, PeerGone, Receive, Refusal, Scope, Send
from acp_integration.endpoint.http_connection import HttpConnection
from acp_integration.endpoint.negotiation import (
    CONNECTION_HEADER,
    SESSION_HEADER,
    accepts_event_stream,
    event_id,
    is_json,
    usable_id,
)
from acp_integration.endpoint.routing import Inbound, read, stream_of, too_long
from acp_integration.endpoint.service import SHUTTING_DOWN, Service
from acp_integration.endpoint.workers import Workers
from acp_integration.errors import ConnectionClosed
from acp_integration.transports.transport import RequestId

logger = logging.getLogger(__name__)

MAX_MESSAGE_SIZE: Final = "acp.agent.max-message-size"
MAX_POST_BODY_SIZE: Final = "acp.agent.transport.http.max-post-body-size"

WORKER_COOKIE: Final = "acp-worker"
"""Names the worker that holds the connection, for a load balancer that sends requests back to where they came from."""

_INVALID: Final = "Invalid JSON-RPC"
_ALLOW: Final = (("allow", "GET, POST, DELETE"),)


class HttpRequests:
    """Answers every HTTP request to the endpoint."""

    def __init__(self, service: Service, workers: Workers) -> None:
        self._service = service
        self._workers = workers
        self._options = service.options

    async def serve(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request, whatever it is."""
        exchange = Exchange(scope, receive, send)
        await self._answering(exchange, partial(self._admit, exchange, scope))

    async def answer(self, exchange: Exchange, caller: Caller) -> None:
        """Answer one request that another worker has let in."""
        await self._answering(exchange, partial(self._dispatch, exchange, {}, caller))

    async def _answering(self, exchange: Exchange, dispatch: Callable[[], Awaitable[None]]) -> None:
        try:
            await dispatch()
        except Refusal as refusal:
            await exchange.refuse(refusal)
        except PeerGone:
            logger.debug("A peer hung up before its answer")
        except Exception:
            logger.exception("A request failed")
            await exchange.refuse(Refusal(500, "internal error"))

    async def _admit(self, exchange: Exchange, scope: Scope) -> None:
        await self._dispatch(exchange, scope, self._service.admission.admit(scope))

    async def _dispatch(self, exchange: Exchange, scope: Scope, caller: Caller) -> None:
        if exchange.method not in ("GET", "POST", "DELETE"):
            raise Refusal(405, "Method not allowed", _ALLOW)
        self._service.refuse_if_closing()
        if exchange.method == "POST":
            await self._post(exchange, scope, caller)
        elif exchange.method == "GET":
            await self._get(exchange, caller)
        else:
            await self._delete(exchange, caller)

    async def _post(self, exchange: Exchange, scope: Scope, caller: Caller) -> None:
        if not is_json(exchange.headers):
            raise Refusal(415, "Content-Type must be application/json")
        inbound = await self._read(exchange)
        has_connection = exchange.header(CONNECTION_HEADER) is not None
        if isinstance(inbound.message, jsonrpc.Invalid) and not has_connection:
            raise Refusal(400, _INVALID)
        if inbound.starts and has_connection:
            raise Refusal(400, "Initialize not allowed on existing connection")
        problem = too_long(inbound)
        if problem is not None:
            raise Refusal(400, problem)
        if inbound.starts and inbound.request_id is not None:
            await self._initialize(exchange, inbound, inbound.request_id, opened_by(scope, caller))
        else:
            await self._accept(exchange, inbound, caller)

    async def _read(self, exchange: Exchange) -> Inbound:
        limit, key = self._body_limit()
        inbound = read(await exchange.body(limit, Refusal(413, f"POST body exceeds {limit} bytes ({key})")))
        if isinstance(inbound.message, jsonrpc.Invalid):
            start = inbound.frame.lstrip()[:1]
            if inbound.message.code == jsonrpc.PARSE_ERROR or start not in (b"{", b"["):
                raise Refusal(400, _INVALID)
            if start == b"[":
                raise Refusal(501, "JSON-RPC batches are not supported")
        return inbound

    async def _initialize(self, exchange: Exchange, inbound: Inbound, request_id: RequestId, caller: Caller) -> None:
        connection = HttpConnection(self._options, request_id)
        served = self._start(connection, caller)
        try:
            connection.offer(inbound, None)
            with self._service.response(), anyio.move_on_after(self._options.initialize_timeout):
                await exchange.unless_gone(connection.settled.wait)
            answer = self._initialized(served, connection)
        except BaseException:
            connection.hang_up()
            raise
        if served.initialized:
            cookie = f"{WORKER_COOKIE}={self._service.connections.worker}; Path=/; HttpOnly; SameSite=Lax"
            await exchange.answer(200, answer, JSON, ((CONNECTION_HEADER, served.id), ("set-cookie", cookie)))
        else:
            connection.hang_up()
            await exchange.answer(200, answer, JSON)

    def _start(self, connection: HttpConnection, caller: Caller) -> Served:
        try:
            return self._service.start(connection, caller)
        except Refusal:
            raise
        except Exception:
            logger.exception("An agent could not be created")
            raise Refusal(500, "initialize failed") from None

    def _initialized(self, served: Served, connection: HttpConnection) -> bytes:
        """The answer to `initialize`; only a successful one leaves a connection behind."""
        answer = connection.initialize_answer
        if self._service.closing:
            raise Refusal(503, SHUTTING_DOWN)
        if answer is None:
            raise Refusal(500, "initialize failed")
        message = jsonrpc.decode(answer)
        served.initialized = isinstance(message, jsonrpc.Response) and message.error is None
        return answer

    async def _forwarded(self, exchange: Exchange, caller: Caller, body: bytes = b"") -> bool:
        """Let the worker that holds the connection answer, if that is another one; says whether it is."""
        identifier = exchange.header(CONNECTION_HEADER)
        owner = None if identifier is None else self._service.connections.other_owner(identifier)
        if owner is None:
            return False
        with self._service.response():
            return await self._workers.forward(exchange, owner, caller, body)
        raise Refusal(503, SHUTTING_DOWN)  # cut off: who holds the connection may still be there

    async def _accept(self, exchange: Exchange, inbound: Inbound, caller: Caller) -> None:
        if await self._forwarded(exchange, caller, inbound.frame):
            return
        served, connection = self._find(exchange, caller)
        header = usable_id(exchange.header(SESSION_HEADER), "Acp-Session-Id")
        stream = None
        if isinstance(inbound.message, jsonrpc.Response):
            connection.check_answer(inbound.message, header)
        else:
            stream = stream_of(inbound, header)
        forbidden = self._service.confinement.refusal(inbound)
        if forbidden is not None:
            connection.reject(inbound, forbidden)
        elif not connection.offer(inbound, stream):
            await self._wait_for_place(exchange, served, partial(connection.accept, inbound, stream))
        served.quiet_since = anyio.current_time()
        await exchange.answer(202)

    async def _wait_for_place(self, exchange: Exchange, served: Served, place: Callable[[], Awaitable[None]]) -> None:
        served.posts += 1
        try:
            with self._service.response():
                await exchange.unless_gone(place)
        except ConnectionClosed:
            self._service.refuse_if_closing()
            raise Refusal(404) from None
        finally:
            served.posts -= 1
        self._service.refuse_if_closing()

    async def _get(self, exchange: Exchange, caller: Caller) -> None:
        if not accepts_event_stream(exchange.header("accept")):
            raise Refusal(406, "Accept must allow text/event-stream")
        if await self._forwarded(exchange, caller):
            return
        served, connection = self._find(exchange, caller)
        session = usable_id(exchange.header(SESSION_HEADER), "Acp-Session-Id")
        last_id = event_id(usable_id(exchange.header("last-event-id"), "Last-Event-ID"))
        headers = [(CONNECTION_HEADER, served.id)]
        if session is not None:
            headers.append((SESSION_HEADER, session))
        mailbox = connection.streams.open(session)
        stream = EventStream(exchange, mailbox, self._options.keep_alive_interval, lambda: self._service.closing)
        try:
            with self._service.response():
                await stream.serve(headers, last_id)
        finally:
            connection.streams.left(session)

    async def _delete(self, exchange: Exchange, caller: Caller) -> None:
        if await self._forwarded(exchange, caller):
            return
        served, connection = self._find(exchange, caller)
        self._service.connections.remove(served)
        connection.hang_up()
        await exchange.answer(202)

    def _find(self, exchange: Exchange, caller: Caller) -> tuple[Served, HttpConnection]:
        identifier = usable_id(exchange.header(CONNECTION_HEADER), "Acp-Connection-Id")
        if identifier is None:
            raise Refusal(400, "The Acp-Connection-Id header is missing")
        return self._service.connections.find(identifier, caller.principal)

    def _body_limit(self) -> tuple[int, str]:
        post, message = self._options.max_post_body_size, self._options.max_message_size
        return (message, MAX_MESSAGE_SIZE) if post is None or post >= message else (post, MAX_POST_BODY_SIZE)
