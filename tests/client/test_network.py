"""Agents reached over WebSocket and Streamable HTTP: our own endpoint on real servers, and servers with faults."""

import asyncio
import gc
import json
import logging
import socket
import threading
from collections import Counter
from contextlib import AsyncExitStack

import anyio
import hypercorn.asyncio
import hypercorn.config
import pytest
import uvicorn
import websockets

from acp_integration.agents import acp_agent
from acp_integration.assembly import AgentBuilder
from acp_integration.client.builder import build_client
from acp_integration.context import PromptContext
from acp_integration.endpoint import AcpEndpoint, EndpointApplication
from acp_integration.errors import ConnectionClosed, PeerError
from acp_integration.handlers import on
from acp_integration.options import EndpointOptions
from acp_integration.transports.http import HttpTransport
from acp_integration.transports.websocket import WebSocketTransport

TRANSPORTS = [HttpTransport, WebSocketTransport]


@acp_agent(name="counter")
class CounterAgent:
    """Counts as far as it is told to, or asks before it deletes."""

    @on.prompt
    async def answer(self, turn: PromptContext):
        if turn.text == "ask":
            allowed = await turn.ask_permission("Delete everything")
            yield "allowed" if allowed else "denied"
            return
        if turn.text == "wait":
            await turn.wait_cancelled()
            return
        for number in range(int(turn.text)):
            yield f"{number} "


async def run_uvicorn(app, stack):
    server = uvicorn.Server(uvicorn.Config(app, port=0, log_level="warning", lifespan="on", ws_max_size=2**27))
    tasks = await stack.enter_async_context(anyio.create_task_group())
    stack.callback(setattr, server, "should_exit", True)
    tasks.start_soon(server.serve)
    with anyio.fail_after(10):
        while not server.started:
            await anyio.sleep(0.005)
    return server.servers[0].sockets[0].getsockname()[1]


class Recorder:
    """An ASGI application in front of another that notes every HTTP request."""

    def __init__(self, app):
        self.app = app
        self.requests = []
        self.ports = []

    def forget(self):
        self.requests.clear()
        self.ports.clear()

    async def __call__(self, scope, receive, send):
        if scope["type"] == "http":
            headers = {name.decode(): value.decode() for name, value in scope["headers"]}
            self.requests.append((scope["method"], headers))
            self.ports.append((scope["method"], scope["client"][1]))
        await self.app(scope, receive, send)


@pytest.fixture
async def stack():
    async with AsyncExitStack() as entered:
        yield entered


@pytest.fixture
async def site(stack):
    """``address(transport)`` of our endpoint on uvicorn, and what reached it."""
    endpoint = AcpEndpoint(AgentBuilder(CounterAgent).build_factory(), EndpointOptions())
    recorder = Recorder(EndpointApplication(endpoint))
    port = await run_uvicorn(recorder, stack)

    def address(transport):
        return f"{'ws' if transport is WebSocketTransport else 'http'}://127.0.0.1:{port}/acp"

    address.recorder, address.endpoint = recorder, endpoint
    return address


@pytest.mark.parametrize("transport", TRANSPORTS)
async def test_updates_arrive_complete_and_in_order(site, transport, bound):
    with bound(30):
        async with build_client(transport(site(transport))) as client:
            result = await (await client.new_session("/")).prompt("500")
    assert result.text == "".join(f"{number} " for number in range(500))


@pytest.mark.parametrize("transport", TRANSPORTS)
async def test_many_clients_that_open_talk_and_close_leave_the_process_as_it_was(site, transport, bound, caplog):
    caplog.set_level(logging.ERROR)  # what is logged is kept until the test has ended
    held = []
    with bound(60):
        for cycle in range(60):
            async with build_client(transport(site(transport))) as client:
                assert (await (await client.new_session("/")).prompt("1")).text == "0 "
            del client
            site.recorder.forget()
            if cycle in (19, 59):
                held.append(await held_with(site))
    (objects_soon, *soon), (objects_late, *late) = held
    assert late == soon
    assert objects_late - objects_soon < 200  # a timer may still hold one connection; 40 would hold thousands


async def held_with(site):
    """Objects, threads and tasks; the server is in this process too, and notices a moment later that a client left."""
    while site.endpoint.counters()["connections"]:
        await anyio.sleep(0.005)
    for _ in range(1000):  # a loop drops the timers that were cancelled when they are more than all others
        asyncio.get_running_loop().call_later(60, int).cancel()
    await anyio.wait_all_tasks_blocked()
    gc.collect()
    return len(gc.get_objects()), threading.active_count(), len(asyncio.all_tasks())


@pytest.mark.parametrize("transport", TRANSPORTS)
async def test_a_permission_asked_inside_a_prompt_is_answered(site, transport, bound):
    with bound(30):
        client = build_client(
            transport(site(transport)), None, [lambda b: b.on_permission(lambda r: r.options[0].option_id)]
        )
        async with client:
            assert (await (await client.new_session("/")).prompt("ask")).text == "allowed"


@pytest.mark.parametrize("transport", TRANSPORTS)
async def test_a_turn_is_cancelled_while_others_go_on(site, transport, bound):
    with bound(30):
        async with build_client(transport(site(transport))) as client:
            waiting, other = await client.new_session("/"), await client.new_session("/")
            handle = await waiting.start("wait")
            assert (await other.prompt("3")).text == "0 1 2 "
            await waiting.cancel()
            assert (await handle.result()).stop_reason == "cancelled"


@pytest.mark.parametrize("transport", TRANSPORTS)
async def test_the_end_of_a_client_ends_its_connection_at_the_server(site, transport, bound):
    with bound(30):
        async with build_client(transport(site(transport))):
            assert site.endpoint.active_connection_count == 1
        while site.endpoint.active_connection_count:
            await anyio.sleep(0.01)


@pytest.mark.parametrize("transport", TRANSPORTS)
async def test_a_server_that_is_not_there_says_so(transport, free_port, bound):
    scheme = "ws" if transport is WebSocketTransport else "http"
    client = build_client(transport(f"{scheme}://127.0.0.1:{free_port()}/acp"))
    with bound(20), pytest.raises(ConnectionClosed, match="cannot be reached"):
        await client.initialize()
    await client.aclose()


@pytest.mark.parametrize("transport", TRANSPORTS)
async def test_a_server_that_refuses_says_its_status(stack, transport, bound):
    async def refuse(scope, receive, send):
        if scope["type"] == "lifespan":
            raise RuntimeError
        if scope["type"] == "websocket":
            await send({"type": "websocket.close"})
            return
        await send({"type": "http.response.start", "status": 403, "headers": []})
        await send({"type": "http.response.body", "body": b"who are you"})

    async with AsyncExitStack() as servers:
        config = uvicorn.Config(refuse, port=0, log_level="warning", lifespan="off")
        server = uvicorn.Server(config)
        tasks = await servers.enter_async_context(anyio.create_task_group())
        servers.callback(setattr, server, "should_exit", True)
        tasks.start_soon(server.serve)
        with bound(20):
            while not server.started:
                await anyio.sleep(0.005)
            port = server.servers[0].sockets[0].getsockname()[1]
            scheme = "ws" if transport is WebSocketTransport else "http"
            with pytest.raises(ConnectionClosed, match="403"):
                async with build_client(transport(f"{scheme}://127.0.0.1:{port}/acp")):
                    pass


@pytest.mark.parametrize("transport", TRANSPORTS)
async def test_a_transport_closes_twice_in_any_state(site, transport, bound):
    with bound(20):
        never = transport(site(transport))
        await never.aclose()
        await never.aclose()
        with pytest.raises(ConnectionClosed):
            await never.open()
        opened = transport(site(transport))
        await opened.open()
        await opened.aclose()
        await opened.aclose()


@pytest.mark.parametrize("transport", TRANSPORTS)
def test_headers_show_by_name_only(transport):
    shown = repr(transport("http://host", headers={"Authorization": "Bearer secret"}))
    assert "Authorization" in shown
    assert "secret" not in shown


# -- Streamable HTTP ---------------------------------------------------------------------------------------------------


async def test_everything_of_a_session_names_it_answers_included(site, bound):
    with bound(30):
        client = build_client(
            HttpTransport(site(HttpTransport), headers={"Authorization": "Bearer x"}),
            None,
            [lambda builder: builder.on_permission(lambda request: request.options[0].option_id)],
        )
        async with client:
            session = await client.new_session("/")
            await session.prompt("ask")
            await session.cancel()
            await client.ext_notification("_last")
    posts = [headers for method, headers in site.recorder.requests if method == "POST"]
    named = [headers.get("acp-session-id") for headers in posts]
    # initialize, session/new, prompt, the answer to the permission, cancel, _last
    assert named == [None, None, session.id, session.id, session.id, None]
    assert all(headers["authorization"] == "Bearer x" for headers in posts)
    assert all("acp-connection-id" in headers for headers in posts[1:])


async def test_each_event_stream_has_a_tcp_connection_of_its_own(site, bound):
    with bound(30):
        async with build_client(HttpTransport(site(HttpTransport))) as client:
            for _ in range(4):
                await (await client.new_session("/")).prompt("1")
    streams = [port for method, port in site.recorder.ports if method == "GET"]
    posts = {port for method, port in site.recorder.ports if method == "POST"}
    assert len(streams) == len(set(streams)) == 5
    assert not posts & set(streams)


class Cutting:
    """A TCP proxy that can cut every connection it carries."""

    def __init__(self, port):
        self.target = port
        self.open = set()
        self.accepting = True
        self._refused = 0
        self._was_refused = anyio.Event()

    async def serve(self, listener):
        await listener.serve(self._carry)

    async def _carry(self, near):
        if not self.accepting:
            await near.aclose()
            self._refused += 1
            self._was_refused.set()
            self._was_refused = anyio.Event()
            return
        async with near, await anyio.connect_tcp("127.0.0.1", self.target) as far, anyio.create_task_group() as tasks:
            self.open.add(tasks.cancel_scope)
            tasks.start_soon(self._pump, near, far, tasks)
            tasks.start_soon(self._pump, far, near, tasks)
        self.open.discard(tasks.cancel_scope)

    @staticmethod
    async def _pump(source, sink, tasks):
        try:
            async for chunk in source:
                await sink.send(chunk)
        except (anyio.BrokenResourceError, anyio.ClosedResourceError):
            pass
        tasks.cancel_scope.cancel()

    async def come_back_after(self, refusals):
        """Accept again once so many connections were refused."""
        while self._refused < refusals:
            await self._was_refused.wait()
        self.accepting = True

    def cut(self):
        for scope in list(self.open):
            scope.cancel()


async def test_streams_that_are_cut_again_and_again_lose_and_repeat_nothing(site, stack, bound):
    port = int(site(HttpTransport).rpartition(":")[2].split("/")[0])
    proxy = Cutting(port)
    listener = await stack.enter_async_context(await anyio.create_tcp_listener(local_host="127.0.0.1"))
    tasks = await stack.enter_async_context(anyio.create_task_group())
    stack.callback(tasks.cancel_scope.cancel)
    tasks.start_soon(proxy.serve, listener)
    with bound(60):
        uri = f"http://127.0.0.1:{listener.extra(anyio.abc.SocketAttribute.local_port)}/acp"
        async with build_client(HttpTransport(uri)) as client:
            session = await client.new_session("/")
            texts = []
            async for item in session.stream("2000"):
                texts.append(item.text)
                if len(texts) in (5, 300, 900):
                    proxy.cut()
    assert "".join(texts[:-1]) == "".join(f"{number} " for number in range(2000))
    reopened = [headers for method, headers in site.recorder.requests if "last-event-id" in headers]
    assert reopened


async def test_a_server_that_is_away_for_a_while_loses_and_repeats_nothing_and_no_call_fails(site, stack, bound):
    proxy = Cutting(int(site(HttpTransport).rpartition(":")[2].split("/")[0]))
    listener = await stack.enter_async_context(await anyio.create_tcp_listener(local_host="127.0.0.1"))
    tasks = await stack.enter_async_context(anyio.create_task_group())
    stack.callback(tasks.cancel_scope.cancel)
    tasks.start_soon(proxy.serve, listener)
    with bound(60):
        uri = f"http://127.0.0.1:{listener.extra(anyio.abc.SocketAttribute.local_port)}/acp"
        async with build_client(HttpTransport(uri)) as client:
            session = await client.new_session("/")
            texts = []
            async for item in session.stream("500"):
                texts.append(item.text)
                if len(texts) == 100:
                    proxy.accepting = False
                    proxy.cut()
                    tasks.start_soon(proxy.come_back_after, 8)
            assert "".join(texts[:-1]) == "".join(f"{number} " for number in range(500))
            assert (await session.prompt("1")).text == "0 "


class Swallowing:
    """An ASGI application in front of another: the first events of each stream never reach the client."""

    def __init__(self, app):
        self.app = app
        self.streams = {}

    async def __call__(self, scope, receive, send):
        headers = dict(scope.get("headers", ()))
        if scope.get("method") != "GET":
            await self.app(scope, receive, send)
            return
        went_on_from = self.streams.setdefault(headers.get(b"acp-session-id"), [])
        went_on_from.append(headers.get(b"last-event-id"))
        if len(went_on_from) > 1:
            await self.app(scope, receive, send)
            return
        swallowed = anyio.Event()

        async def forward(message):
            if b"data:" in message.get("body", b""):
                swallowed.set()
            elif not swallowed.is_set():
                await send(message)

        async def leave():
            await swallowed.wait()
            return {"type": "http.disconnect"}

        await self.app(scope, leave, forward)
        await send({"type": "http.response.body", "body": b""})


async def test_events_that_went_into_a_stream_that_died_before_its_first_are_not_lost(stack, bound):
    endpoint = AcpEndpoint(AgentBuilder(CounterAgent).build_factory(), EndpointOptions())
    server = Swallowing(EndpointApplication(endpoint))
    port = await run_uvicorn(server, stack)
    with bound(20):
        async with build_client(HttpTransport(f"http://127.0.0.1:{port}/acp")) as client:
            session = await client.new_session("/")
            assert (await session.prompt("20")).text == "".join(f"{number} " for number in range(20))
    assert server.streams == {None: [None, b"0"], session.id.encode(): [None, b"0"]}


class Scripted:
    """A server that answers each request with what a test says."""

    def __init__(self, answer):
        self.answer = answer
        self.requests = []

    async def __call__(self, scope, receive, send):
        if scope["type"] == "lifespan":
            await receive()
            await send({"type": "lifespan.startup.complete"})
            await receive()
            await send({"type": "lifespan.shutdown.complete"})
            return
        headers = {name.decode(): value.decode() for name, value in scope["headers"]}
        body = b""
        while (message := await receive())["type"] == "http.request":
            body += message["body"]
            if not message.get("more_body"):
                break
        request = (scope["method"], headers, json.loads(body) if body else None)
        self.requests.append(request)
        status, extra, content = await self.answer(*request)
        await send({"type": "http.response.start", "status": status, "headers": extra})
        if content is None:  # a stream without events
            await send({"type": "http.response.body", "body": b": hello\n\n", "more_body": True})
            while (await receive())["type"] != "http.disconnect":
                pass
            return
        await send({"type": "http.response.body", "body": content})


EVENTS = [(b"content-type", b"text/event-stream")]


def initialized(message, *cookies):
    body = {"jsonrpc": "2.0", "id": message["id"], "result": {"protocolVersion": 1, "agentCapabilities": {}}}
    headers = [(b"content-type", b"application/json"), (b"acp-connection-id", b"c1"), *cookies]
    return 200, headers, json.dumps(body).encode()


async def test_cookies_are_kept_and_returned_on_posts_and_streams(stack, bound):
    async def answer(method, _headers, message):
        if method == "POST" and message["method"] == "initialize":
            return initialized(message, (b"set-cookie", b"worker=7; Path=/"))
        return (200, EVENTS, None) if method == "GET" else (202, [], b"")

    server = Scripted(answer)
    port = await run_uvicorn(server, stack)
    with bound(20):
        async with build_client(HttpTransport(f"http://127.0.0.1:{port}/acp")) as client:
            await client.ext_notification("_x")
            while not any(message and message["method"] == "_x" for _, _, message in server.requests):
                await anyio.sleep(0.01)
    assert {method: headers.get("cookie") for method, headers, _ in server.requests[1:]} == dict.fromkeys(
        ("GET", "POST", "DELETE"), "worker=7"
    )


async def test_a_refused_request_fails_alone(stack, bound):
    async def answer(method, _headers, message):
        if method == "POST" and message["method"] == "initialize":
            return initialized(message)
        if method == "GET":
            return 200, EVENTS, None
        return (413, [], b"too much") if message and message["method"] == "_big" else (202, [], b"")

    port = await run_uvicorn(Scripted(answer), stack)
    with bound(20):
        async with build_client(HttpTransport(f"http://127.0.0.1:{port}/acp")) as client:
            with pytest.raises(PeerError) as failure:
                await client.ext_request("_big")
            assert failure.value.data == {"status": 413, "body": "too much"}
            assert not client.closed


@pytest.mark.parametrize("what", ["POST", "GET"])
async def test_a_server_that_forgot_the_connection_ends_it(stack, what, bound):
    async def answer(method, _headers, message):
        if method == "POST" and message["method"] == "initialize":
            return initialized(message)
        if method == what:
            return 404, [], b"unknown connection"
        return (200, EVENTS, None) if method == "GET" else (202, [], b"")

    port = await run_uvicorn(Scripted(answer), stack)
    with bound(20):
        client = build_client(HttpTransport(f"http://127.0.0.1:{port}/acp"))

        async def first_calls():
            await client.initialize()
            await client.ext_request("_x")

        with pytest.raises(ConnectionClosed, match="404"):
            await first_calls()
        await client.aclose()


async def test_a_session_lost_with_its_connection_is_a_connection_closed(stack, bound, caplog):
    caplog.set_level("INFO", "acp_integration.transports.http")
    posted, opened = anyio.Event(), set()

    async def answer(method, headers, message):
        if method == "POST" and message["method"] == "initialize":
            return initialized(message)
        if method != "GET":
            posted.set()
            return 202, [], b""
        session = headers.get("acp-session-id")
        if session not in opened:
            opened.add(session)
            return 200, EVENTS, b": cut\n\n"
        await posted.wait()
        while session is None and "of session lost" not in caplog.text:
            await anyio.sleep(0.01)
        return 404, [], b"unknown connection"

    port = await run_uvicorn(Scripted(answer), stack)
    with bound(20):
        client = build_client(HttpTransport(f"http://127.0.0.1:{port}/acp"))
        await client.initialize()
        with pytest.raises(ConnectionClosed, match="404"):
            await client.ext_request("_x", session="lost")
        await client.aclose()


async def test_a_session_the_server_does_not_know_yet_is_posted_without_its_header(stack, bound):
    async def answer(method, headers, message):
        if method == "POST" and message["method"] == "initialize":
            return initialized(message)
        if method == "GET":
            return (404, [], b"") if "acp-session-id" in headers else (200, EVENTS, None)
        return 202, [], b""

    server = Scripted(answer)
    port = await run_uvicorn(server, stack)
    with bound(20):
        async with build_client(HttpTransport(f"http://127.0.0.1:{port}/acp")) as client:
            await client.ext_notification("_x", session="unknown")
            while not any(message and message["method"] == "_x" for _, _, message in server.requests):
                await anyio.sleep(0.01)
            assert not client.closed
    [posted] = [headers for _, headers, message in server.requests if message and message["method"] == "_x"]
    assert "acp-session-id" not in posted


async def test_a_stream_that_cannot_be_reopened_is_given_up_after_a_time(stack, bound):
    gets = Counter()

    async def answer(method, _headers, message):
        if method == "POST" and message["method"] == "initialize":
            return initialized(message)
        if method == "GET":
            gets["all"] += 1
            return (200, EVENTS, b"") if gets["all"] == 1 else (503, [], b"")
        return 202, [], b""

    port = await run_uvicorn(Scripted(answer), stack)
    with bound(20):
        client = build_client(HttpTransport(f"http://127.0.0.1:{port}/acp", patience=0.5))
        await client.initialize()
        with pytest.raises(ConnectionClosed, match=r"could not be reached again for 0\.5 s"):
            await client.ext_request("_x")
        await client.aclose()
    assert gets["all"] < 20, "reopened without a pause"


@pytest.mark.parametrize("http2", [False, True])
async def test_five_idle_streams_slow_no_post_down_on_hypercorn(stack, http2, free_port, bound):
    endpoint = AcpEndpoint(AgentBuilder(CounterAgent).build_factory(), EndpointOptions())
    config = hypercorn.config.Config()
    config.bind = [f"127.0.0.1:{free_port()}"]
    config.loglevel = "warning"
    stop = anyio.Event()
    tasks = await stack.enter_async_context(anyio.create_task_group())
    stack.callback(stop.set)
    tasks.start_soon(lambda: hypercorn.asyncio.serve(EndpointApplication(endpoint), config, shutdown_trigger=stop.wait))
    with bound(60):
        while True:
            try:
                await (await anyio.connect_tcp(*config.bind[0].split(":"))).aclose()
                break
            except OSError:
                await anyio.sleep(0.01)
        async with build_client(HttpTransport(f"http://{config.bind[0]}/acp", http2=http2)) as client:
            sessions = [await client.new_session("/") for _ in range(5)]
            for number in range(100):
                assert (await sessions[number % 5].prompt("1")).text == "0 "


# -- WebSocket ---------------------------------------------------------------------------------------------------------


async def socket_server(stack, behave):
    server = await stack.enter_async_context(websockets.serve(behave, "127.0.0.1", 0, max_size=None))
    return f"ws://127.0.0.1:{next(iter(server.sockets)).getsockname()[1]}/acp"


async def answer_initialize(connection):
    message = json.loads(await connection.recv())
    result = {"protocolVersion": 1, "agentCapabilities": {}}
    await connection.send(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}))


async def test_a_socket_that_the_agent_closes_gives_its_code_and_reason(stack, bound):
    async def behave(connection):
        await answer_initialize(connection)
        await connection.recv()
        await connection.close(1008, "too many updates")

    uri = await socket_server(stack, behave)
    with bound(20):
        async with build_client(WebSocketTransport(uri)) as client:
            with pytest.raises(ConnectionClosed, match="with code 1008: too many updates"):
                await client.ext_request("_x")


async def test_a_message_over_the_limit_names_the_setting(stack, bound):
    async def behave(connection):
        await answer_initialize(connection)
        await connection.recv()
        await connection.send("x" * 5000)
        await connection.wait_closed()

    uri = await socket_server(stack, behave)
    with bound(20):
        async with build_client(WebSocketTransport(uri, max_message_size=2000)) as client:
            with pytest.raises(ConnectionClosed, match="more than 2000 bytes at once: raise max-message-size"):
                await client.ext_request("_x")


async def test_headers_are_sent_and_binary_messages_are_ignored(stack, bound):
    seen = []

    async def behave(connection):
        seen.append(connection.request.headers["Authorization"])
        await connection.send(b"\x00\x01")
        await answer_initialize(connection)
        await connection.wait_closed()

    uri = await socket_server(stack, behave)
    with bound(20):
        async with build_client(WebSocketTransport(uri, headers={"Authorization": "Bearer x"})):
            assert seen == ["Bearer x"]


async def test_a_server_that_does_not_answer_the_handshake_is_given_up(bound):
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        uri = f"ws://127.0.0.1:{listener.getsockname()[1]}/acp"
        with bound(20), pytest.raises(ConnectionClosed, match="cannot be reached"):
            await build_client(WebSocketTransport(uri, connect_timeout=0.05)).initialize()
