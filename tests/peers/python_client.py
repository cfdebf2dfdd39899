"""Drives ProbeAgent with the official Python SDK, and prints what it saw as one JSON object.

usage: python_client.py '{"stdio": [command, ...]}' | '{"http": url}' | '{"websocket": url}'
"""

import asyncio
import contextlib
import json
import sys
from collections.abc import AsyncIterator
from typing import Any

import acp
from acp.http import create_http_stream
from acp.schema import AllowedOutcome, RequestPermissionResponse, TextContentBlock
from acp.ws import create_websocket_stream


class Client:
    def __init__(self) -> None:
        self.choice = "y"
        self.texts: dict[str, list[str]] = {}
        self.arrived = asyncio.Event()

    def on_connect(self, conn: Any) -> None:
        self.agent = conn

    async def session_update(self, session_id: str, update: Any, **_: Any) -> None:
        content = getattr(update, "content", None)
        if isinstance(content, TextContentBlock):
            self.texts.setdefault(session_id, []).append(content.text)
        self.arrived.set()

    async def request_permission(self, **_: Any) -> RequestPermissionResponse:
        return RequestPermissionResponse(outcome=AllowedOutcome(outcome="selected", option_id=self.choice))

    async def says(self, session_id: str, start: str, times: int = 1) -> None:
        """Wait for so many texts that start like this: the SDK may hand over an answer before what came ahead of it."""
        while sum(text.startswith(start) for text in self.texts.get(session_id, [])) < times:
            self.arrived.clear()
            await self.arrived.wait()


@contextlib.asynccontextmanager
async def connected(client: Client, target: dict[str, Any]) -> AsyncIterator[Any]:
    if "stdio" in target:
        command, *arguments = target["stdio"]
        async with acp.spawn_agent_process(client, command, *arguments) as (agent, _):
            yield agent
        return
    if "http" in target:
        stream = create_http_stream(target["http"])
    else:
        stream = await create_websocket_stream(target["websocket"])
    connection = acp.connect_to_agent(client, stream)
    try:
        yield connection
    finally:
        await connection.close()


async def main() -> None:
    client = Client()
    async with connected(client, json.loads(sys.argv[1])) as agent:
        initialized = await agent.initialize(protocol_version=acp.PROTOCOL_VERSION)
        first = (await agent.new_session(cwd="/", mcp_servers=[])).session_id
        second = (await agent.new_session(cwd="/", mcp_servers=[])).session_id

        async def prompt(session: str, text: str) -> str:
            answer = await agent.prompt(session_id=session, prompt=[TextContentBlock(type="text", text=text)])
            return str(answer.stop_reason)

        reasons = [await prompt(first, "stream:50")]
        await client.says(first, "", times=50)
        chunks = len(client.texts[first])
        reasons.append(await prompt(second, "hello"))
        reasons.append(await prompt(first, "perm please"))
        client.choice = "n"
        reasons.append(await prompt(first, "perm please"))
        turn = asyncio.ensure_future(prompt(second, "wait_for_cancel please"))
        await client.says(second, "waiting")
        await agent.cancel(session_id=second)
        reasons.append(await turn)
        await client.says(first, "permission:", times=2)
        seen = {
            "protocolVersion": initialized.protocol_version,
            "distinct": first != second,
            "stopReasons": reasons,
            "chunks": chunks,
            "echo": client.texts[second][0],
            "permissions": [text for text in client.texts[first] if text.startswith("permission:")],
        }
    print(json.dumps(seen))


asyncio.run(main())
