"""Agents on the official SDKs, in both languages, driven over every transport they offer."""

import subprocess
import sys
from pathlib import Path

import anyio
import pytest

from acp_integration.client.builder import build_client
from acp_integration.transports.http import HttpTransport
from acp_integration.transports.process import ProcessTransport
from acp_integration.transports.websocket import WebSocketTransport

AGENTS = Path(__file__).parent / "agents"
BOUND = 60

pytestmark = pytest.mark.sdk


@pytest.fixture
def npm_agent(peers, tmp_path):
    """The TypeScript agent beside the packages it imports, and the program that runs it."""
    (tmp_path / "node_modules").symlink_to(peers)
    script = tmp_path / "npm_agent.mjs"
    script.write_text((AGENTS / "npm_agent.mjs").read_text())
    return str(peers / ".bin" / "node"), str(script)


async def drive(transport):
    client = build_client(transport, None, [lambda b: b.on_permission(lambda request: request.options[0].option_id)])
    with anyio.fail_after(BOUND):
        async with client:
            one, two = await client.new_session("/"), await client.new_session("/")
            assert one.id != two.id
            counted = await one.prompt("200")
            assert counted.text == "".join(f"{number} " for number in range(200))
            assert counted.stop_reason == "end_turn"
            assert (await two.prompt("ask")).text == "selected"
            items = [item async for item in one.stream("3")]
            assert [item.text for item in items] == ["0 ", "1 ", "2 ", "0 1 2 "]


async def test_the_python_sdks_agent_on_stdio():
    await drive(ProcessTransport(sys.executable, [str(AGENTS / "official_agent.py")]))


@pytest.mark.parametrize("transport", [HttpTransport, WebSocketTransport])
async def test_the_python_sdks_agent_over_the_network(transport, free_port, spawn):
    port = free_port()
    spawn(sys.executable, AGENTS / "official_agent.py", str(port), stderr=subprocess.DEVNULL)
    await listening(port)
    scheme = "ws" if transport is WebSocketTransport else "http"
    await drive(transport(f"{scheme}://127.0.0.1:{port}/acp"))


async def test_the_npm_sdks_agent_on_stdio(npm_agent):
    await drive(ProcessTransport(npm_agent[0], [npm_agent[1]]))


@pytest.mark.parametrize("transport", [HttpTransport, WebSocketTransport])
async def test_the_npm_sdks_server_over_the_network(transport, npm_agent, spawn):
    server = spawn(*npm_agent, "serve", stderr=subprocess.DEVNULL)
    port = (await anyio.to_thread.run_sync(server.stdout.readline)).decode().strip()
    scheme = "ws" if transport is WebSocketTransport else "http"
    await drive(transport(f"{scheme}://127.0.0.1:{port}/acp"))


async def test_our_own_agent_on_stdio(repo_root):
    command = ["-m", "acp_integration", "stdio", "examples.agents:ProbeAgent", "--app-dir", str(repo_root)]
    with anyio.fail_after(BOUND):
        async with build_client(ProcessTransport(sys.executable, command)) as client:
            result = await (await client.new_session("/")).prompt("echo hello")
    assert result.stop_reason == "end_turn"


async def listening(port):
    with anyio.fail_after(BOUND):
        while True:
            try:
                await (await anyio.connect_tcp("127.0.0.1", port)).aclose()
            except OSError:
                await anyio.sleep(0.05)
            else:
                return
