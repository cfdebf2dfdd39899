"""Without the libraries of the extra, its transports say which line installs them; everything else works."""

import pytest

BLOCKED = """
import sys
sys.modules[{module!r}] = None
from acp_integration.client import build_client
from acp_integration.errors import MissingExtra
from acp_integration.settings import AcpClientSettings
from acp_integration.transports.selection import select_client_transport
settings = AcpClientSettings.from_mapping({{"transport.{key}.uri": "{scheme}://host/acp"}}, prefix="")
try:
    select_client_transport(settings)
except MissingExtra as error:
    print(error)
"""


@pytest.mark.parametrize(
    ("module", "key", "scheme"), [("websockets.asyncio.client", "websocket", "ws"), ("httpx2", "http", "http")]
)
def test_a_missing_library_names_its_extra(run_python, module, key, scheme):
    done = run_python("-c", BLOCKED.format(module=module, key=key, scheme=scheme))
    assert "pip install 'acp-integration[client]'" in done.stdout, done.stderr


def test_a_client_of_a_child_process_needs_neither_library_nor_the_sdk(run_python):
    program = """
import sys
for name in ("httpx2", "websockets", "acp", "pydantic"):
    sys.modules[name] = None
import asyncio
from acp_integration.client import build_client
from acp_integration.transports.process import ProcessTransport

async def main():
    client = build_client(ProcessTransport("no-such-agent"))
    try:
        await client.initialize()
    except Exception as error:
        print(type(error).__name__)

asyncio.run(main())
"""
    done = run_python("-c", program)
    assert done.stdout == "ConnectionClosed\n", done.stderr
