"""A listener of our own: loopback unless told, the real port, both transports on one path, an end within its bound."""

import json
import socket
from pathlib import Path

import anyio
import httpx2
import pytest
from websockets.asyncio.client import connect
from websockets.exceptions import ConnectionClosed

from acp_integration.assembly import AgentBuilder
from acp_integration.endpoint import AcpEndpoint
from acp_integration.errors import MissingExtra
from acp_integration.hosts import AcpEndpointHost, AcpListenerHost
from acp_integration.hosts import listener as listener_module
from acp_integration.hosts.listener import bind
from acp_integration.options import EndpointOptions, ListenerOptions
from examples.agents import ProbeAgent
from tests.endpoint.driver import INITIALIZE, driving


def make_endpoint(**options):
    return AcpEndpoint(AgentBuilder(ProbeAgent).build_factory(), EndpointOptions(**options))


async def test_http_and_websocket_are_served_on_one_path_until_it_is_stopped(bound):
    host = AcpListenerHost(make_endpoint(path="/agent"), ListenerOptions(port=0))
    assert host.port() is None
    with bound(20):
        await host.start()
        url = f"127.0.0.1:{host.port()}/agent"
        async with httpx2.AsyncClient() as client, connect(f"ws://{url}") as socket:
            answer = await client.post(f"http://{url}", json=INITIALIZE)
            assert answer.status_code == 200
            assert "server" not in answer.headers
            assert (await client.post(f"http://127.0.0.1:{host.port()}/acp", json=INITIALIZE)).status_code == 404
            await socket.send(json.dumps(INITIALIZE))
            assert json.loads(await socket.recv())["result"]["protocolVersion"] == 1
            headers = {"accept": "*/*", "acp-connection-id": answer.headers["acp-connection-id"]}
            async with client.stream("GET", f"http://{url}", headers=headers) as stream:
                chunks = stream.aiter_raw()
                assert await anext(chunks) == b": connected\n\n"
                assert not host.termination().done()
                stopped = host.stop_gracefully()
                assert [chunk async for chunk in chunks] == [b": shutting down\n\n"]
            with pytest.raises(ConnectionClosed) as closed:
                await socket.recv()
            assert closed.value.rcvd.code == 1001
        await stopped
        await host.termination()
    assert host.stop_gracefully() is stopped


def open_descriptors():
    return {entry.name for entry in Path("/proc/self/fd").iterdir()}


async def test_a_listener_that_was_stopped_leaves_no_descriptor_and_no_complaint(bound, caplog):
    async def start_and_stop():
        async with AcpListenerHost(make_endpoint(), ListenerOptions(port=0)):
            pass

    with bound():
        await start_and_stop()
        before = open_descriptors()
        await start_and_stop()
    assert open_descriptors() == before
    assert not [
        record for record in caplog.records if record.name.startswith("acp_integration") and record.levelno > 20
    ]


async def test_a_client_that_leaves_ends_nothing(bound):
    async with AcpListenerHost(make_endpoint(), ListenerOptions(port=0)) as host:
        for _ in range(2):
            async with connect(f"ws://127.0.0.1:{host.port()}/acp") as socket:
                await socket.send(json.dumps(INITIALIZE))
                with bound():
                    await socket.recv()
    assert host.termination().done()


async def test_a_start_after_a_stop_does_nothing(bound):
    host = AcpListenerHost(make_endpoint(), ListenerOptions(port=0))
    with bound():
        await host.stop(1)
        await host.start()
    assert host.port() is None
    assert host.termination().done()


async def test_a_port_that_is_taken_fails_the_start(bound, free_port):
    port = free_port()
    with socket.create_server(("127.0.0.1", port)), pytest.raises(OSError, match=r"taken|in use"), bound():
        await AcpListenerHost(make_endpoint(), ListenerOptions(port=port)).start()


def test_without_a_host_it_listens_on_this_machine_only():
    bound_sockets = bind(None, 0)
    try:
        addresses = {listening.getsockname()[0] for listening in bound_sockets}
        assert addresses <= {"127.0.0.1", "::1"}
        assert len({listening.getsockname()[1] for listening in bound_sockets}) == 1
    finally:
        for listening in bound_sockets:
            listening.close()


def test_a_host_that_is_named_is_the_one_it_listens_on():
    (listening,) = bind("0.0.0.0", 0)
    with listening:
        assert listening.getsockname()[0] == "0.0.0.0"


def test_a_server_that_is_not_installed_is_named_with_its_extra(monkeypatch):
    monkeypatch.setattr(listener_module, "HAS_SERVER", False)
    with pytest.raises(MissingExtra, match=r"pip install 'acp-integration\[server\]'"):
        AcpListenerHost(make_endpoint())


# The host of an endpoint on somebody else's server.


class Stubborn:
    """An agent that does not end when it is told to."""

    active_turns = 0
    open_sessions = 0

    def __init__(self, transport, caller):
        self._transport = transport

    async def serve(self):
        self._transport.write(b'{"jsonrpc":"2.0","id":0,"result":{}}', None, 0)
        await anyio.sleep_forever()

    def stop(self):
        pass


async def initialize(endpoint):
    async with driving(endpoint) as driver:
        await driver.connection()


async def test_an_endpoint_host_ends_what_the_endpoint_serves(bound):
    endpoint = make_endpoint()
    with bound():
        async with AcpEndpointHost(endpoint) as host:
            await initialize(endpoint)
            assert endpoint.active_connection_count == 1
            assert host.port() is None
    assert endpoint.active_connection_count == 0
    assert host.termination().done()


async def test_what_never_ends_is_cut_off_within_the_shutdown_timeout(bound, caplog):
    endpoint = AcpEndpoint(Stubborn, EndpointOptions(shutdown_timeout=0.1))
    with bound():
        host = AcpEndpointHost(endpoint)
        await host.start()
        await initialize(endpoint)
        await host.stop(5)
    assert "did not end in time" in caplog.text


async def test_a_stop_that_takes_too_long_returns_and_says_so(bound, caplog):
    endpoint = AcpEndpoint(Stubborn, EndpointOptions(shutdown_timeout=60))
    with bound():
        host = AcpEndpointHost(endpoint)
        await host.start()
        await initialize(endpoint)
        await host.stop(0.1)
        await host.termination()
        await endpoint.wait_ended()
    assert "did not close within 0.1 s" in caplog.text


async def test_an_endpoint_that_shuts_down_by_itself_ends_its_host(bound):
    endpoint = make_endpoint()
    with bound():
        host = AcpEndpointHost(endpoint)
        await host.start()
        endpoint.begin_shutdown()
        await host.termination()
