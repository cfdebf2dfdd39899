"""How a server's shutdown is heard of: in front of its signal handlers and of its own methods, and taken back."""

import os
import signal
import threading

import anyio
import pytest
import uvicorn

from acp_integration.hosts.taps import CallTap, ShutdownTaps, SignalTap


@pytest.fixture
def handled():
    """The signals that a handler of the server's has seen; the handlers are put back."""
    seen = []
    before = signal.signal(signal.SIGTERM, lambda number, frame: seen.append(number))
    yield seen
    signal.signal(signal.SIGTERM, before)


async def until(reached):
    with anyio.fail_after(5):
        while not reached():
            await anyio.sleep(0.005)


async def test_a_signal_is_heard_before_the_servers_own_handler_which_runs_too(handled):
    heard = []
    server = signal.getsignal(signal.SIGTERM)
    tap = SignalTap(signal.SIGTERM, lambda: heard.append(list(handled)))
    os.kill(os.getpid(), signal.SIGTERM)
    await until(lambda: handled)
    assert heard == [[]]
    tap.restore()
    assert signal.getsignal(signal.SIGTERM) is server


async def test_a_tap_behind_another_one_only_passes_signals_on(handled):
    heard = []
    first = SignalTap(signal.SIGTERM, lambda: heard.append(1))
    second = SignalTap(signal.SIGTERM, lambda: heard.append(2))
    first.restore()
    os.kill(os.getpid(), signal.SIGTERM)
    await until(lambda: handled)
    assert heard == [2]
    second.restore()


async def test_a_signal_without_a_handler_is_left_alone(handled):
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    taps = ShutdownTaps(lambda: None)
    taps.install()
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_IGN
    taps.restore()


def test_another_thread_than_the_main_one_touches_no_signal(handled):
    server = signal.getsignal(signal.SIGTERM)
    taps = ShutdownTaps(lambda: None)
    thread = threading.Thread(target=taps.install)
    thread.start()
    thread.join(5)
    assert signal.getsignal(signal.SIGTERM) is server


async def test_a_method_is_preceded_on_one_object_and_given_back():
    calls = []

    class Server:
        async def shutdown(self, sockets=None):
            calls.append(("server", sockets))

    server, other = Server(), Server()
    tap = CallTap(server, "shutdown", lambda: calls.append("tap"))
    await server.shutdown(sockets=[1])
    await other.shutdown()
    assert calls == ["tap", ("server", [1]), ("server", None)]
    tap.restore()
    assert "shutdown" not in vars(server)


async def test_uvicorn_told_to_exit_without_a_signal_is_heard():
    heard = anyio.Event()
    taps = ShutdownTaps(heard.set)

    async def app(scope, receive, send):
        taps.look_again()
        await send({"type": "http.response.start", "status": 204, "headers": []})
        await send({"type": "http.response.body", "body": b""})

    server = uvicorn.Server(uvicorn.Config(app, port=0, log_level="warning", lifespan="off"))
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(server.serve)
        await until(lambda: server.started)
        port = server.servers[0].sockets[0].getsockname()[1]
        async with await anyio.connect_tcp("127.0.0.1", port) as stream:
            await stream.send(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
            assert b"204" in await stream.receive()
            assert not heard.is_set()
        server.should_exit = True
        with anyio.fail_after(5):
            await heard.wait()
    taps.restore()
    assert "shutdown" not in vars(server)


async def test_no_server_is_no_error():
    taps = ShutdownTaps(lambda: None)
    for _ in range(5):
        taps.look_again()
    taps.restore()
