"""Serves one WebSocket from its handshake to its close."""

import logging
from contextlib import suppress
from typing import Final

import anyio

from acp_integration import jsonrpc
from acp_integration.endpoint.admission import opened_by
from acp_integration.endpoint.connections import Served
from acp_integration.endpoint.exchange import TEXT, Headers, Message, PeerGone, Receive, Refusal, Scope, Send, encoded
from acp_integration.endpoint.negotiation import CONNECTION_HEADER
from acp_integration.endpoint.routing import Inbound, read, too_long
from acp_integration.endpoint.service import Service
from acp_integration.endpoint.websocket import (
    GOING_AWAY,
    INTERNAL_ERROR,
    NORMAL,
    POLICY_VIOLATION,
    PROTOCOL_ERROR,
    TOO_BIG,
    WebSocketConnection,
)
from acp_integration.errors import ConnectionClosed

logger = logging.getLogger(__name__)

SUBPROTOCOL: Final = "acp"
"""Echoed when a browser offers it, so that it can offer a token beside it."""

_RESPONSE_EXTENSION: Final = "websocket.http.response"
_REPEATED: Final = "Initialize not allowed on existing connection"


class SocketRequests:
    """Serves every WebSocket to the endpoint."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._options = service.options

    async def serve(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one socket, whatever the peer does."""
        if (await receive())["type"] != "websocket.connect":
            return
        try:
            await self._admit(scope, receive, _noticing(send))
        except PeerGone:
            logger.debug("A peer hung up during its handshake", exc_info=True)

    async def _admit(self, scope: Scope, receive: Receive, send: Send) -> None:
        socket = WebSocketConnection(self._options, send, self._farewell)
        try:
            served = self._service.start(socket, opened_by(scope, self._service.admission.admit(scope)))
        except Refusal as refusal:
            await _refuse(scope, send, refusal)
        except Exception:
            logger.exception("An agent could not be created")
            await send(_acceptance(scope, []))
            await send({"type": "websocket.close", "code": INTERNAL_ERROR, "reason": "initialize failed"})
        else:
            await self._serve(served, socket, _acceptance(scope, [(CONNECTION_HEADER, served.id)]), receive, send)

    async def _serve(
        self, served: Served, socket: WebSocketConnection, acceptance: Message, receive: Receive, send: Send
    ) -> None:
        try:
            await send(acceptance)
            with self._service.response():
                await self._converse(served, socket, receive)
        finally:
            socket.ended()

    def _farewell(self) -> int:
        return GOING_AWAY if self._service.closing else NORMAL

    async def _converse(self, served: Served, socket: WebSocketConnection, receive: Receive) -> None:
        async with anyio.create_task_group() as tasks:

            async def read_all() -> None:
                await self._read_all(served, socket, receive)
                tasks.cancel_scope.cancel()

            tasks.start_soon(read_all)
            tasks.start_soon(self._expect_initialize, served, socket)
            tasks.start_soon(self._expect_frames, socket)
            await socket.send_all()
            tasks.cancel_scope.cancel()

    async def _read_all(self, served: Served, socket: WebSocketConnection, receive: Receive) -> None:
        """Take every text frame, until the peer has left; a binary one means nothing."""
        while (message := await receive())["type"] != "websocket.disconnect":
            text = message.get("text")
            if text is not None:
                socket.last_frame_at = anyio.current_time()
                await self._take(served, socket, text)

    async def _take(self, served: Served, socket: WebSocketConnection, text: str) -> None:
        frame = text.encode("utf-8", "surrogatepass")
        if len(frame) > self._options.max_message_size:
            socket.fail(TOO_BIG, f"a message exceeds {self._options.max_message_size} bytes")
            return
        inbound = read(frame)
        if not served.initialized:
            if not inbound.starts:
                socket.fail(PROTOCOL_ERROR, "the first message must be initialize")
                return
            served.initialized = True
        elif inbound.starts:
            socket.write(jsonrpc.error_frame(inbound.request_id, jsonrpc.INVALID_REQUEST, _REPEATED))
            return
        await self._hand_on(socket, inbound)

    async def _hand_on(self, socket: WebSocketConnection, inbound: Inbound) -> None:
        problem = too_long(inbound)
        if problem is not None:
            socket.write(jsonrpc.error_frame(None, jsonrpc.INVALID_REQUEST, f"Invalid request: {problem}"))
        elif (forbidden := self._service.confinement.refusal(inbound)) is not None:
            socket.write(forbidden)
        else:
            with suppress(ConnectionClosed):
                await socket.inbox.put(inbound.frame)

    async def _expect_initialize(self, served: Served, socket: WebSocketConnection) -> None:
        await anyio.sleep(self._options.initialize_timeout)
        if not served.initialized:
            socket.fail(POLICY_VIOLATION, "no initialize in time")

    async def _expect_frames(self, socket: WebSocketConnection) -> None:
        limit = self._options.web_socket_idle_timeout
        # One timer for each quiet spell costs less than an event, or a new deadline, for each frame.
        while socket.last_frame_at + limit > anyio.current_time():  # noqa: ASYNC110
            await anyio.sleep_until(socket.last_frame_at + limit)
        socket.fail(GOING_AWAY, "idle")


def _noticing(send: Send) -> Send:
    """Tells a peer that left, for which each server has an error of its own, from a failure here."""

    async def noticing(message: Message) -> None:
        try:
            await send(message)
        except Exception as error:
            raise PeerGone from error

    return noticing


def _acceptance(scope: Scope, headers: Headers) -> Message:
    subprotocol = SUBPROTOCOL if SUBPROTOCOL in scope.get("subprotocols", ()) else None
    return {"type": "websocket.accept", "subprotocol": subprotocol, "headers": encoded(headers)}


async def _refuse(scope: Scope, send: Send, refusal: Refusal) -> None:
    """Answer a handshake with the refusal where the server can; elsewhere closing it means 403."""
    if _RESPONSE_EXTENSION not in (scope.get("extensions") or {}):
        await send({"type": "websocket.close", "code": POLICY_VIOLATION, "reason": ""})
        return
    headers = [("content-type", TEXT), *refusal.headers]
    await send({"type": f"{_RESPONSE_EXTENSION}.start", "status": refusal.status, "headers": encoded(headers)})
    await send({"type": f"{_RESPONSE_EXTENSION}.body", "body": refusal.text.encode("utf-8", "replace")})
