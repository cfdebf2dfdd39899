"""Every server ends soon and cleanly although streams are open and a turn runs."""

import contextlib
import shutil
import signal
import sys
from typing import Any

import anyio
import anyio.to_thread
import httpx2
import pytest
import websockets

from tests.fastapi.peers import over_http, over_socket

APP = "examples.fastapi_app.main:app"
UVICORN = ("uvicorn", "--log-level", "warning", "--port", "{port}")
SERVERS = {
    "uvicorn-asyncio": (*UVICORN, "--loop", "asyncio", APP),
    "uvicorn-uvloop": (*UVICORN, "--loop", "uvloop", APP),
    "uvicorn-workers": (*UVICORN, "--workers", "2", APP),
    "uvicorn-reload": (*UVICORN, "--reload", "--reload-dir", "acp_fastapi", APP),
    "hypercorn": ("hypercorn", "--log-level", "warning", "--bind", "127.0.0.1:{port}", APP),
    "gunicorn": (
        "gunicorn", "--log-level", "warning", "--bind", "127.0.0.1:{port}", "-k", "uvicorn_worker.UvicornWorker", APP
    ),
}  # fmt: skip
BOUND = 15
"""Seconds a loaded machine gets; a server that is not told waits for its streams for ever, or until it is killed."""


async def until_answering(port: int) -> None:
    with anyio.fail_after(30):
        while True:
            try:
                stream = await anyio.connect_tcp("127.0.0.1", port)
            except OSError:
                await anyio.sleep(0.05)
            else:
                await stream.aclose()
                return


async def say_when_up(address: str) -> str:
    with anyio.fail_after(30):
        while True:
            try:
                async with over_socket(address) as peer:
                    return await peer.say("hi")
            except (OSError, websockets.InvalidStatus, websockets.InvalidMessage):
                await anyio.sleep(0.05)


async def start(spawn: Any, free_port: Any, repo_root: Any, command: tuple[str, ...], **options: Any) -> Any:
    port = free_port()
    words = [word.format(port=port) for word in command]
    process = spawn(sys.executable, "-m", *words, cwd=options.pop("cwd", repo_root), **options)
    await until_answering(port)
    return process, f"127.0.0.1:{port}/acp"


async def ended(process: Any) -> str:
    _, errors = await anyio.to_thread.run_sync(lambda: process.communicate(timeout=BOUND))
    return errors.decode()


@pytest.mark.parametrize("command", SERVERS.values(), ids=SERVERS)
async def test_a_server_that_is_told_to_stop_stops(command, spawn, free_port, repo_root):
    process, address = await start(spawn, free_port, repo_root, command)
    workers = "--workers" in command  # each HTTP request may reach another one
    over = over_socket if workers else over_http
    async with over_socket(address) as socket, over(address) as streams, anyio.create_task_group() as tasks:
        for peer in (socket, streams):
            await peer.open_session()
            tasks.start_soon(peer.prompt, "wait_for_cancel")
            await peer.until_updates(1)
        process.send_signal(signal.SIGTERM)
        errors = await ended(process)
        tasks.cancel_scope.cancel()
    assert "Traceback" not in errors, errors
    assert process.returncode in (0, -signal.SIGTERM), errors


async def test_a_server_that_has_served_enough_requests_stops(spawn, free_port, repo_root, http):
    command = (*UVICORN, "--limit-max-requests", "12", APP)
    process, address = await start(spawn, free_port, repo_root, command)
    async with over_http(address) as peer, over_socket(address):
        await peer.open_session()
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(ended, process)
            for _ in range(12):
                with contextlib.suppress(httpx2.TransportError):
                    await http.get(f"http://{address.removesuffix('acp')}")
    assert process.returncode == 0


async def test_a_reload_with_open_streams_brings_the_new_code(spawn, free_port, repo_root, tmp_path):
    shutil.copytree(repo_root / "examples", tmp_path / "examples")
    command = (*UVICORN, "--reload", "--app-dir", str(tmp_path), "--reload-dir", str(tmp_path), APP)
    process, address = await start(spawn, free_port, repo_root, command, cwd=tmp_path)
    async with over_http(address) as peer, over_socket(address) as socket:
        assert await peer.say("hi") == "echo: hi"
        agents = tmp_path / "examples" / "agents.py"
        agents.write_text(agents.read_text().replace('f"echo: ', 'f"reloaded: '))
        with anyio.fail_after(30):
            await socket.socket.wait_closed()
        assert await say_when_up(address) == "reloaded: hi"
        peer.tasks.cancel_scope.cancel()
    process.send_signal(signal.SIGTERM)
    assert "Traceback" not in await ended(process)
