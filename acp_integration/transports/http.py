"""An agent that is reached over Streamable HTTP: messages go out by POST and come in on event streams."""

import logging
import ssl
from collections.abc import Mapping, Sequence
from http.cookiejar import CookieJar
from typing import Any, Final

import anyio
import msgspec
from anyio.abc import TaskGroup

from acp_integration import jsonrpc
from acp_integration.errors import ConnectionClosed, MissingExtra
from acp_integration.options import ClientOptions
from acp_integration.owned import OwnedTask
from acp_integration.transports.arrivals import Arrivals
from acp_integration.transports.outbox import Outbox
from acp_integration.transports.transport import Frame, RequestId, TransportKind

try:
    import httpx2

    from acp_integration.transports.event_stream import GONE, EventStream, StreamGone
except ImportError as error:
    raise MissingExtra("The HTTP transport of the client", "client") from error

logger = logging.getLogger(__name__)

CONNECTION_ID: Final = "Acp-Connection-Id"
SESSION_ID: Final = "Acp-Session-Id"
CLOSE_SECONDS: Final = 2.0
"""How long what is still to be sent, and the goodbye, may take."""
STREAM_SECONDS: Final = 10.0
"""How long a message waits for the event stream of its session to be open."""
PATIENCE: Final = 60.0
KEEP_ALIVE: Final = 2.0
"""Idle POST connections are given up before servers do, which most do after five seconds."""


class _Hint(msgspec.Struct):
    sessionId: str | None = None  # noqa: N815  # as the protocol spells it


class HttpTransport:
    """One HTTP connection to an agent: a message out is a POST; the connection and each session have an event stream.

    A stream that is cut is opened again, from the last event that was read. Cookies are kept and returned.

    Args:
        uri: the address of the endpoint, ``http://`` or ``https://``.
        headers: headers of every request, for example Authorization.
        max_message_size: the largest message accepted, in bytes; a larger one ends the connection.
        http2: whether POSTs may use HTTP/2; event streams always have a TCP connection of their own.
        patience: how long to go on trying when the server cannot be reached, in seconds.
        ssl_context: what decides whom to trust; None for the system's certificates.
    """

    kind: TransportKind = "http"

    def __init__(
        self,
        uri: str,
        *,
        headers: Mapping[str, str] | None = None,
        max_message_size: int = ClientOptions().max_message_size,
        http2: bool = False,
        patience: float = PATIENCE,
        ssl_context: ssl.SSLContext | None = None,
    ) -> None:
        self.uri = uri
        self._headers = dict(headers or {})
        self._limit = max_message_size
        self._http2 = http2
        self._patience = patience
        self._ssl_context = ssl_context
        self._named: dict[str, str] = {}
        self._outbox = Outbox()
        self._arrivals = Arrivals()
        self._streams: dict[str | None, EventStream] = {}
        self._in_flight: dict[RequestId, str | None] = {}
        self._owner = OwnedTask("acp-http-client")
        self._tasks: TaskGroup | None = None
        self._used = False

    def __repr__(self) -> str:
        return f"HttpTransport({self.uri!r}, headers={sorted(self._headers)})"

    async def open(self) -> None:
        """Get ready; the server is first contacted by `initialize`.

        Raises:
            ConnectionClosed: if it was opened before.
        """
        if self._used:
            raise ConnectionClosed("This transport was connected already: make another one")
        self._used = True
        cookies: Any = CookieJar()  # one for both clients
        timeout = httpx2.Timeout(None, connect=ClientOptions().connect_timeout, write=ClientOptions().request_timeout)
        limits = httpx2.Limits(max_connections=None, keepalive_expiry=KEEP_ALIVE)
        shared: dict[str, Any] = {"headers": self._headers, "cookies": cookies, "timeout": timeout, "limits": limits}
        shared["verify"] = self._ssl_context or trust_for(self.uri)
        try:
            self._posts = httpx2.AsyncClient(http2=self._http2, **shared)
        except ImportError as error:
            raise MissingExtra("HTTP/2", "client") from error
        self._gets = httpx2.AsyncClient(**shared)
        self._owner.start(self._live)

    async def receive(self) -> Sequence[Frame]:
        """All messages that are here, once there is one; nothing after `aclose`.

        Raises:
            ConnectionClosed: if the server refused the connection or cannot be reached.
        """
        return await self._arrivals.take()

    def write(self, frame: bytes, session: str | None = None, answers: RequestId | None = None) -> None:
        """Queue one message."""
        self._outbox.put(frame, session, answers)

    @property
    def congested(self) -> bool:
        """Whether the server takes messages slower than they are written."""
        return self._outbox.congested

    async def drain(self) -> None:
        """Wait for the server."""
        await self._outbox.drain()

    async def wait_broken(self) -> None:
        """Wait until the connection has ended."""
        await self._arrivals.ended.wait()

    async def aclose(self) -> None:
        """Send what is queued and end the connection at the server, within two seconds each; safe to call twice."""
        self._used = True
        self._outbox.close()
        with anyio.CancelScope(shield=True):
            with anyio.move_on_after(CLOSE_SECONDS):
                await self._owner.wait()
            await self._owner.stop()

    async def _live(self) -> None:
        try:
            async with anyio.create_task_group() as self._tasks:
                await self._send_all()
                await self._say_goodbye()
                self._tasks.cancel_scope.cancel()
        finally:
            self._outbox.abandon()
            self._arrivals.end()
            with anyio.CancelScope(shield=True):
                await self._posts.aclose()
                await self._gets.aclose()

    async def _send_all(self) -> None:
        while (outgoing := await self._outbox.take()) is not None and not self._arrivals.ended.is_set():
            frame, session, _ = outgoing
            if session is not None:
                await self._await_stream(session)
            await self._send(frame, session)

    async def _send(self, frame: bytes, session: str | None) -> None:
        message = jsonrpc.decode(frame)
        if isinstance(message, jsonrpc.Request):
            self._in_flight[message.id] = session
        try:
            response = await self._post(frame, session)
        except httpx2.HTTPError as error:
            said = str(error) or type(error).__name__
            if self._named and not isinstance(error, httpx2.ConnectError):
                await self._fail_alone(message, f"The message may be lost: {said}", {"reason": "connection-lost"})
            else:
                self._fail(ConnectionClosed(f"{self.uri} cannot be reached: {said}"))
            return
        if response.is_success:
            await self._accepted(response)
        elif not self._named or response.status_code in GONE - {400}:
            self._fail(ConnectionClosed(f"{self.uri} answered HTTP status {response.status_code}: {_said(response)}"))
        else:
            text = f"The server answered HTTP status {response.status_code}"
            await self._fail_alone(message, text, {"status": response.status_code, "body": _said(response)})

    async def _post(self, frame: bytes, session: str | None) -> httpx2.Response:
        """Send one message, again while the server cannot even be connected to."""
        headers = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream", **self._named}
        if session is not None and session in self._streams:
            headers[SESSION_ID] = session
        # Only initialize is answered by the response itself; everything else is accepted at once.
        timeout = httpx2.Timeout(ClientOptions().request_timeout if self._named else None)
        deadline = anyio.current_time() + (self._patience if self._named else 0.0)
        while True:
            try:
                return await self._posts.post(self.uri, content=frame, headers=headers, timeout=timeout)
            except httpx2.ConnectError:
                if anyio.current_time() >= deadline:
                    raise
            await anyio.sleep(0.2)

    async def _accepted(self, response: httpx2.Response) -> None:
        if not self._named and (connection := response.headers.get(CONNECTION_ID)):
            self._named = {CONNECTION_ID: connection, "Acp-Protocol-Version": "1"}
            await self._deliver(response.content)
            await self._await_stream(None)
        elif response.content:
            await self._deliver(response.content)

    async def _fail_alone(self, message: jsonrpc.Message, text: str, data: Mapping[str, Any]) -> None:
        """A message that did not get through ends nothing but the request it is."""
        logger.error("%s: %s", self.uri, text)
        if isinstance(message, jsonrpc.Request):
            await self._deliver(jsonrpc.error_frame(message.id, jsonrpc.INTERNAL_ERROR, text, dict(data)))

    async def _await_stream(self, session: str | None) -> None:
        """Open the event stream that the answers come on, before the message is sent."""
        stream = self._ensure_stream(session)
        with anyio.move_on_after(STREAM_SECONDS):
            await stream.opened.wait()

    def _ensure_stream(self, session: str | None) -> EventStream:
        stream = self._streams.get(session)
        if stream is None:
            headers = self._named if session is None else {**self._named, SESSION_ID: session}
            deliver = self._deliver if session is not None else self._deliver_and_look
            stream = EventStream(
                self._gets, self.uri, headers, deliver, limit=self._limit + 1024, patience=self._patience
            )
            self._streams[session] = stream
            assert self._tasks is not None  # messages are sent inside the task group only
            self._tasks.start_soon(self._follow, session, stream)
        return stream

    async def _follow(self, session: str | None, stream: EventStream) -> None:
        try:
            await stream.run()
        except StreamGone as error:
            self._streams.pop(session, None)
            if session is None:
                self._fail(error)
            else:
                await self._lose_session(session, error)
        except ConnectionClosed as error:
            self._fail(error)

    async def _lose_session(self, session: str, error: StreamGone) -> None:
        """The server does not know the session: what waits for it fails, and other sessions go on."""
        logger.info("%s", error)
        connection = self._streams.get(None)
        if connection is not None:
            with anyio.move_on_after(STREAM_SECONDS):
                await connection.settled()
        if connection is None or connection.gone is not None:
            return  # it is the whole connection that the server does not know
        for identifier, owner in list(self._in_flight.items()):
            if owner == session:
                frame = jsonrpc.error_frame(identifier, jsonrpc.RESOURCE_NOT_FOUND, str(error))
                await self._deliver(frame)

    async def _deliver_and_look(self, frame: bytes) -> None:
        """Open the stream of a session as soon as the connection's stream tells of it."""
        message = jsonrpc.decode(frame)
        if isinstance(message, jsonrpc.Response) and message.error is None:
            try:
                session = msgspec.json.decode(message.result, type=_Hint).sessionId
            except msgspec.DecodeError:
                session = None
            if session is not None:
                self._ensure_stream(session)
        await self._deliver(frame)

    async def _deliver(self, frame: bytes) -> None:
        message = jsonrpc.decode(frame)
        if isinstance(message, jsonrpc.Response) and message.id is not None:
            self._in_flight.pop(message.id, None)
        await self._arrivals.put(frame)

    async def _say_goodbye(self) -> None:
        if self._named and not self._arrivals.ended.is_set():
            try:
                await self._posts.delete(self.uri, headers=self._named)
            except httpx2.HTTPError as error:
                logger.debug("The server was not told of the end: %r", error)

    def _fail(self, error: ConnectionClosed) -> None:
        self._arrivals.end(error)
        self._outbox.abandon()


def trust_for(uri: str) -> ssl.SSLContext:
    """Whom to trust: for plain HTTP nobody, because finding out takes longer than all the rest."""
    return ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT) if uri.startswith("http:") else httpx2.create_ssl_context()


def _said(response: httpx2.Response) -> str:
    return response.text[:500]
