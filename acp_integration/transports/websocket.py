"""An agent that is reached over a WebSocket: one text frame a message."""

import logging
import ssl
from collections.abc import Mapping, Sequence
from typing import Any, Final

import anyio

from acp_integration.errors import ConnectionClosed, MissingExtra
from acp_integration.options import ClientOptions
from acp_integration.owned import OwnedTask
from acp_integration.transports.outbox import Outbox
from acp_integration.transports.transport import Frame, RequestId, TransportKind

try:
    from websockets.asyncio.client import ClientConnection, connect
    from websockets.exceptions import ConnectionClosed as SocketClosed
    from websockets.exceptions import ConnectionClosedOK, InvalidHandshake, InvalidStatus, InvalidURI
except ImportError as error:
    raise MissingExtra("The WebSocket transport of the client", "client") from error

logger = logging.getLogger(__name__)

PING_SECONDS: Final = 20.0
"""How often the connection is checked, and how long the answer may take."""
CLOSE_SECONDS: Final = 5.0
"""How long the closing handshake, and what is still to be written, may take."""


class WebSocketTransport:
    """One WebSocket to an agent.

    Args:
        uri: the address, ``ws://`` or ``wss://``.
        headers: headers of the handshake, for example Authorization.
        connect_timeout: how long connecting may take, in seconds.
        max_message_size: the largest message accepted, in bytes; a larger one ends the connection.
        ssl_context: what decides whom to trust; None for the system's certificates.
    """

    kind: TransportKind = "websocket"

    def __init__(
        self,
        uri: str,
        *,
        headers: Mapping[str, str] | None = None,
        connect_timeout: float | None = ClientOptions().connect_timeout,
        max_message_size: int = ClientOptions().max_message_size,
        ssl_context: ssl.SSLContext | None = None,
    ) -> None:
        self.uri = uri
        self._headers = dict(headers or {})
        self._connect_timeout = connect_timeout
        self._limit = max_message_size
        self._tls: dict[str, Any] = {} if ssl_context is None else {"ssl": ssl_context}
        self._socket: ClientConnection | None = None
        self._outbox = Outbox()
        self._writer = OwnedTask("acp-websocket-writer")
        self._used = False

    def __repr__(self) -> str:
        return f"WebSocketTransport({self.uri!r}, headers={sorted(self._headers)})"

    async def open(self) -> None:
        """Connect.

        Raises:
            ConnectionClosed: if it was opened before, or the agent cannot be reached; the text says why.
        """
        if self._used:
            raise ConnectionClosed("This transport was connected already: make another one")
        self._used = True
        try:
            self._socket = await connect(
                self.uri,
                additional_headers=self._headers,
                open_timeout=self._connect_timeout,
                ping_interval=PING_SECONDS,
                ping_timeout=PING_SECONDS,
                close_timeout=CLOSE_SECONDS,
                max_size=self._limit,
                **self._tls,
            )
        except InvalidStatus as error:
            status = error.response.status_code
            raise ConnectionClosed(f"{self.uri} refused the WebSocket with HTTP status {status}") from error
        except (OSError, InvalidHandshake, InvalidURI) as error:
            raise ConnectionClosed(f"{self.uri} cannot be reached: {error or type(error).__name__}") from error
        self._writer.start(self._write)

    async def receive(self) -> Sequence[Frame]:
        """The next message; nothing when the agent closed the connection in order.

        Raises:
            ConnectionClosed: with the code and reason of any other end.
        """
        try:
            while not isinstance(message := await self._connected.recv(), str):
                logger.debug("Ignored a binary message")
        except ConnectionClosedOK:
            return ()
        except SocketClosed as error:
            raise self._closed(error) from error
        return (message.encode(),)

    def write(self, frame: bytes, session: str | None = None, answers: RequestId | None = None) -> None:
        """Queue one message."""
        self._outbox.put(frame, session, answers)

    @property
    def congested(self) -> bool:
        """Whether the agent reads slower than we write."""
        return self._outbox.congested

    async def drain(self) -> None:
        """Wait for the agent to read."""
        await self._outbox.drain()

    async def wait_broken(self) -> None:
        """Wait until the connection has ended."""
        await self._connected.wait_closed()

    async def aclose(self) -> None:
        """Send what is queued and close the connection, within five seconds each; safe to call twice."""
        self._used = True
        self._outbox.close()
        if self._socket is None:
            return
        with anyio.CancelScope(shield=True):
            with anyio.move_on_after(CLOSE_SECONDS):
                await self._writer.wait()
            await self._writer.stop()
            await self._socket.close()

    @property
    def _connected(self) -> ClientConnection:
        if self._socket is None:
            raise ConnectionClosed("The WebSocket is not connected")
        return self._socket

    async def _write(self) -> None:
        try:
            while (outgoing := await self._outbox.take()) is not None:
                await self._connected.send(outgoing[0], text=True)
        except SocketClosed:
            pass  # whoever receives is told why
        finally:
            self._outbox.abandon()

    def _closed(self, error: SocketClosed) -> ConnectionClosed:
        if error.rcvd is not None and (error.sent is None or error.rcvd_then_sent):
            said = f": {error.rcvd.reason}" if error.rcvd.reason else ""
            return ConnectionClosed(f"The agent closed the WebSocket with code {error.rcvd.code}{said}")
        if error.sent is not None and error.sent.code == _TOO_BIG:
            return ConnectionClosed(f"The agent sent more than {self._limit} bytes at once: raise max-message-size")
        return ConnectionClosed(f"The WebSocket broke: {error}")


_TOO_BIG: Final = 1009
