"""Receives updates with a handler, through our client: `ours.py COUNT SIZE COMMAND...` prints what it took as JSON."""

import asyncio
import json
import sys
import time

from acp_integration import AcpClientSettings
from acp_integration.client import ClientBuilder, build_client
from acp_integration.transports import select_client_transport
from acp_integration.types import Update


async def main(count: int, size: int, command: str, *arguments: str) -> None:
    received = 0

    async def handle(update: Update) -> None:
        nonlocal received
        received += len(update.text or "") // size

    def customize(builder: ClientBuilder) -> None:
        builder.on_update(handle)

    stdio = {"command": command, "args": list(arguments)}
    transport = select_client_transport(AcpClientSettings.from_mapping({"transport": {"stdio": stdio}}, prefix=""))
    assert transport is not None
    async with build_client(transport, customizers=[customize]) as client:
        session = await client.new_session("/")
        await session.prompt(f"stream:{count // 10}:{size}")
        received, began, used = 0, time.perf_counter(), time.process_time()
        await session.prompt(f"stream:{count}:{size}")
        seconds, cpu = time.perf_counter() - began, time.process_time() - used
    print(json.dumps({"received": received, "seconds": seconds, "cpu": cpu}))


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1]), int(sys.argv[2]), *sys.argv[3:]))
