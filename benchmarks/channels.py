"""The raw driver's three ways to an agent. No library of either side: what is measured is the agent, not the driver."""

import base64
import os
import select
import socket
from collections.abc import Sequence
from typing import Protocol

READ_SIZE = 1 << 20
PATIENCE = 60.0
HOST = "127.0.0.1"


class Channel(Protocol):
    """Frames to an agent and from it."""

    def send(self, frame: bytes, session: str | None) -> None:
        """Write one frame."""

    def receive(self) -> Sequence[bytes]:
        """All whole frames that are here, once there is one."""

    def join(self, session: str) -> None:
        """Follow the stream of a session, where each has its own."""

    def close(self) -> None:
        """Leave."""


class StdioChannel:
    """Lines on pipes."""

    def __init__(self, to_agent: int, from_agent: int) -> None:
        self._to, self._from = to_agent, from_agent
        self._rest = b""

    def send(self, frame: bytes, session: str | None = None) -> None:  # noqa: ARG002  # one stream for all
        view = memoryview(frame + b"\n")
        while view:
            view = view[os.write(self._to, view) :]

    def receive(self) -> Sequence[bytes]:
        while True:
            _wait(self._from)
            data = os.read(self._from, READ_SIZE)
            if not data:
                raise EOFError("the agent closed its output")
            *lines, self._rest = (self._rest + data).split(b"\n")
            if lines:
                return lines

    def join(self, session: str) -> None:
        pass

    def close(self) -> None:
        pass


class WebSocketChannel:
    """Text frames of a WebSocket, unfragmented, as both servers send them."""

    def __init__(self, port: int) -> None:
        self._socket = socket.create_connection((HOST, port))
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._rest = bytearray()
        key = base64.b64encode(os.urandom(16)).decode()
        upgrade = f"Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: {key}"
        self._socket.sendall(f"GET /acp HTTP/1.1\r\nHost: {HOST}:{port}\r\n{upgrade}\r\n\r\n".encode())
        while b"\r\n\r\n" not in self._rest:
            self._read()
        head, _, rest = bytes(self._rest).partition(b"\r\n\r\n")
        assert b" 101 " in head.split(b"\r\n")[0], head
        self._rest = bytearray(rest)

    def fileno(self) -> int:
        return self._socket.fileno()

    def send(self, frame: bytes, session: str | None = None) -> None:  # noqa: ARG002  # one stream for all
        size = len(frame)
        length = bytes([0x80 | size]) if size < 126 else bytes([0x80 | 126]) + size.to_bytes(2)
        # The mask is zero, so the payload stays as it is.
        self._socket.sendall(b"\x81" + length + b"\0\0\0\0" + frame)

    def receive(self) -> Sequence[bytes]:
        while not (frames := self._cut()):
            self._read()
        return frames

    def join(self, session: str) -> None:
        pass

    def close(self) -> None:
        self._socket.close()

    def _read(self) -> None:
        _wait(self._socket.fileno())
        data = self._socket.recv(READ_SIZE)
        if not data:
            raise EOFError("the agent closed the socket")
        self._rest += data

    def _cut(self) -> list[bytes]:
        frames, rest, at = [], bytes(self._rest), 0
        while len(rest) - at >= 2:
            opcode, size, start = rest[at] & 15, rest[at + 1], at + 2
            if size == 126:
                size, start = int.from_bytes(rest[start : start + 2]), start + 2
            elif size == 127:
                size, start = int.from_bytes(rest[start : start + 8]), start + 8
            if len(rest) < start + size:
                break
            if opcode == 1:
                frames.append(rest[start : start + size])
            at = start + size
        self._rest = bytearray(rest[at:])
        return frames


class HttpChannel:
    """POSTs on one connection that is kept, and an event stream for the connection and for each session."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._posts = socket.create_connection((HOST, port))
        self._posts.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._connection: str | None = None
        self._answers: list[bytes] = []
        self._streams: dict[int, EventStream] = {}

    def send(self, frame: bytes, session: str | None = None) -> None:
        names = {"Acp-Connection-Id": self._connection, "Acp-Session-Id": session}
        given = "".join(f"{name}: {value}\r\n" for name, value in names.items() if value is not None)
        head = f"POST /acp HTTP/1.1\r\nHost: {HOST}:{self._port}\r\nContent-Type: application/json\r\n{given}"
        accept = "Accept: application/json, text/event-stream"
        self._posts.sendall(f"{head}{accept}\r\nContent-Length: {len(frame)}\r\n\r\n".encode() + frame)
        headers, body = _response(self._posts)
        if self._connection is None:
            self._connection = headers["acp-connection-id"]
            self._answers.append(body)
            self._follow({"Acp-Connection-Id": self._connection})

    def receive(self) -> Sequence[bytes]:
        while not self._answers:
            for number in _wait(*self._streams):
                self._answers += self._streams[number].read()
        answers, self._answers = self._answers, []
        return answers

    def join(self, session: str) -> None:
        assert self._connection is not None
        self._follow({"Acp-Connection-Id": self._connection, "Acp-Session-Id": session})

    def close(self) -> None:
        self._posts.close()
        for stream in self._streams.values():
            stream.close()

    def _follow(self, headers: dict[str, str]) -> None:
        stream = EventStream(self._port, headers)
        self._streams[stream.fileno()] = stream


class EventStream:
    """The data of one stream of server-sent events."""

    def __init__(self, port: int, headers: dict[str, str]) -> None:
        self._socket = socket.create_connection((HOST, port))
        given = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
        head = f"GET /acp HTTP/1.1\r\nHost: {HOST}:{port}\r\nAccept: text/event-stream\r\n{given}\r\n"
        self._socket.sendall(head.encode())
        self._rest = b""
        while b"\r\n\r\n" not in self._rest:
            self._rest += _received(self._socket)
        status, _, self._rest = self._rest.partition(b"\r\n\r\n")
        assert b" 200 " in status.split(b"\r\n")[0], status

    def fileno(self) -> int:
        return self._socket.fileno()

    def read(self) -> list[bytes]:
        """What has come: each event is whole within one chunk, so the lines between the chunks' sizes are enough."""
        *lines, self._rest = (self._rest + _received(self._socket)).split(b"\n")
        return [line[5:].strip() for line in lines if line.startswith(b"data:")]

    def close(self) -> None:
        self._socket.close()


def _wait(*numbers: int) -> list[int]:
    poll = select.poll()
    for number in numbers:
        poll.register(number, select.POLLIN)
    ready = [number for number, _ in poll.poll(PATIENCE * 1000)]
    if not ready:
        raise TimeoutError("the agent says nothing")
    return ready


def _received(connection: socket.socket) -> bytes:
    _wait(connection.fileno())
    data = connection.recv(READ_SIZE)
    if not data:
        raise EOFError("the agent closed the connection")
    return data


def _response(connection: socket.socket) -> tuple[dict[str, str], bytes]:
    data = _received(connection)
    while b"\r\n\r\n" not in data:
        data += _received(connection)
    head, _, body = data.partition(b"\r\n\r\n")
    status, *lines = head.decode().split("\r\n")
    assert status.split()[1] in ("200", "202"), data
    headers = {name.strip().lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    while len(body) < int(headers.get("content-length", 0)):
        body += _received(connection)
    if headers.get("transfer-encoding") == "chunked":
        while not body.endswith(b"0\r\n\r\n"):
            body += _received(connection)
        body = next((line for line in body.split(b"\r\n") if line.startswith(b"{")), b"")
    return headers, body
