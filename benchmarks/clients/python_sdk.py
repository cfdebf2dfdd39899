"""The same as `ours.py`, through the official Python SDK."""

import asyncio
import json
import sys
import time
from typing import Any

import acp
from acp.schema import TextContentBlock


class Client:
    def __init__(self, size: int) -> None:
        self.size = size
        self.received = 0
        self.expected = 0
        self.complete = asyncio.Event()

    def on_connect(self, connection: Any) -> None:
        pass

    async def session_update(self, update: Any, **_: Any) -> None:
        self.received += len(update.content.text) // self.size
        if self.received == self.expected:
            self.complete.set()

    def expect(self, updates: int) -> None:
        self.received, self.expected = 0, updates
        self.complete.clear()


async def main(count: int, size: int, command: str, *arguments: str) -> None:
    client = Client(size)
    async with acp.spawn_agent_process(client, command, *arguments) as (agent, _):
        await agent.initialize(protocol_version=acp.PROTOCOL_VERSION)
        session = (await agent.new_session(cwd="/", mcp_servers=[])).session_id

        async def prompt(updates: int) -> None:
            text = TextContentBlock(type="text", text=f"stream:{updates}:{size}")
            client.expect(updates)
            await agent.prompt(session_id=session, prompt=[text])
            await client.complete.wait()  # the answer may overtake the updates before it

        await prompt(count // 10)
        began, used = time.perf_counter(), time.process_time()
        await prompt(count)
        seconds, cpu = time.perf_counter() - began, time.process_time() - used
    print(json.dumps({"received": client.received, "seconds": seconds, "cpu": cpu}))


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1]), int(sys.argv[2]), *sys.argv[3:]))
