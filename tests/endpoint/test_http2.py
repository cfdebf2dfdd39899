"""Everything on one TCP connection: event streams and requests share it, and none waits for another."""

import json
from collections import defaultdict

import anyio
import pytest
from h2.config import H2Configuration
from h2.connection import H2Connection
from h2.events import DataReceived, ResponseReceived, StreamEnded

from acp_integration.assembly import AgentBuilder
from acp_integration.endpoint import AcpEndpoint
from acp_integration.hosts import AcpListenerHost
from acp_integration.options import EndpointOptions, ListenerOptions
from examples.agents import ProbeAgent
from tests.endpoint.driver import INITIALIZE, events_in, ids, prompt, request

WINDOW = 65535
"""The bytes of a stream that a server may send before the client makes room: what the standard begins with."""


class OneConnection:
    """A client of HTTP/2 that has exactly one TCP connection, and makes room in each stream only when it is told to."""

    def __init__(self, transport, port):
        self._transport = transport
        self._port = port
        self._protocol = H2Connection(H2Configuration(header_encoding="utf-8"))
        self._protocol.initiate_connection()
        self._changed = anyio.Event()
        self._pen = anyio.Lock()
        self.headers = {}
        self.bodies = defaultdict(bytes)
        self.ended = set()

    async def run(self):
        while True:
            for event in self._protocol.receive_data(await self._transport.receive()):
                self._take(event)
            await self._flush()
            self._changed.set()
            self._changed = anyio.Event()

    def _take(self, event):
        match event:
            case ResponseReceived():
                self.headers[event.stream_id] = dict(event.headers)
            case DataReceived():
                self.bodies[event.stream_id] += event.data
                if event.flow_controlled_length:  # room for the connection, not for the stream
                    self._protocol.increment_flow_control_window(event.flow_controlled_length)
            case StreamEnded():
                self.ended.add(event.stream_id)

    async def open(self, method, headers, body=None):
        """Send one request on a stream of its own, and return its number at once."""
        stream = self._protocol.get_next_available_stream_id()
        pseudo = {":method": method, ":scheme": "http", ":authority": f"127.0.0.1:{self._port}", ":path": "/acp"}
        self._protocol.send_headers(stream, [*pseudo.items(), *headers.items()], end_stream=body is None)
        if body is not None:
            self._protocol.send_data(stream, body, end_stream=True)
        await self._flush()
        return stream

    async def post(self, message, connection=None, session=None):
        """One message, and the number of the stream that it was answered on."""
        headers = {"content-type": "application/json", **ids(connection, session)}
        stream = await self.open("POST", headers, json.dumps(message).encode())
        await self.until(lambda: stream in self.ended)
        return stream

    async def read(self, connection, session=None, *, stalled=False):
        """An open event stream; a stalled one gets no more room than it begins with."""
        stream = await self.open("GET", {"accept": "text/event-stream", **ids(connection, session)})
        if not stalled:
            await self.make_room(stream)
        await self.until(lambda: self.bodies[stream].startswith(b": connected\n\n"))
        return stream

    async def make_room(self, stream):
        self._protocol.increment_flow_control_window(2**24, stream)
        await self._flush()

    def status(self, stream):
        return int(self.headers[stream][":status"])

    def messages(self, stream):
        body = self.bodies[stream]
        return [message for _, message in events_in(body[: body.rfind(b"\n\n") + 2])]

    async def until(self, reached):
        while not reached():
            await self._changed.wait()

    async def _flush(self):
        async with self._pen:
            if data := self._protocol.data_to_send():
                await self._transport.send(data)


@pytest.fixture
async def client():
    endpoint = AcpEndpoint(AgentBuilder(ProbeAgent).build_factory(), EndpointOptions())
    async with AcpListenerHost(endpoint, ListenerOptions(port=0)) as host:
        port = host.port()
        async with await anyio.connect_tcp("127.0.0.1", port) as transport, anyio.create_task_group() as tasks:
            client = OneConnection(transport, port)
            tasks.start_soon(client.run)
            yield client
            tasks.cancel_scope.cancel()


async def conversing(client, count):
    """The id of an ACP connection, and of so many sessions."""
    connection = client.headers[await client.post(INITIALIZE)]["acp-connection-id"]
    own = await client.read(connection)
    for number in range(count):
        await client.post(request("session/new", f"new {number}", cwd="/", mcpServers=[]), connection)
    await client.until(lambda: len(client.messages(own)) == count)
    return connection, [message["result"]["sessionId"] for message in client.messages(own)]


def texts(messages):
    return [message["params"]["update"]["content"]["text"] for message in messages if "method" in message]


def answers(messages):
    return [message["result"]["stopReason"] for message in messages if "method" not in message]


async def test_event_streams_and_posts_of_many_sessions_share_one_connection(client, bound):
    with bound(20):
        connection, sessions = await conversing(client, 8)
        streams = [await client.read(connection, session) for session in sessions]
        posts = [
            await client.open(
                "POST",
                {"content-type": "application/json", **ids(connection, session)},
                json.dumps(prompt(session, "stream:100", number)).encode(),
            )
            for number, session in enumerate(sessions)
        ]
        await client.until(lambda: all(answers(client.messages(stream)) for stream in streams))
    assert [client.status(stream) for stream in posts] == [202] * 8
    assert not client.ended & set(streams)
    for stream in streams:
        assert answers(client.messages(stream)) == ["end_turn"]
        assert texts(client.messages(stream)) == texts(client.messages(streams[0]))
    assert len(texts(client.messages(streams[0]))) == 100


async def test_a_stream_that_is_not_read_holds_up_neither_the_other_streams_nor_posts(client, bound):
    count = 2000
    with bound(30):
        connection, (slow, quick) = await conversing(client, 2)
        stalled = await client.read(connection, slow, stalled=True)
        stream = await client.read(connection, quick)
        await client.post(prompt(slow, f"stream:{count}", 1), connection, slow)
        await client.until(lambda: len(client.bodies[stalled]) == WINDOW)
        for number in range(2, 7):
            assert client.status(await client.post(prompt(quick, "stream:3", number), connection, quick)) == 202
            await client.until(lambda number=number: len(answers(client.messages(stream))) == number - 1)
        assert len(client.bodies[stalled]) == WINDOW
        await client.make_room(stalled)
        await client.until(lambda: answers(client.messages(stalled)))
    assert len(texts(client.messages(stalled))) == count
