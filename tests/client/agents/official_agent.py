"""An agent on the official Python SDK: on stdio, or over HTTP and WebSocket on the port that is its argument."""

import asyncio
import sys

from acp import PROTOCOL_VERSION, run_agent, schema


class Agent:
    def __init__(self):
        self.sessions = 0

    def on_connect(self, conn):
        self.conn = conn

    async def initialize(self, protocol_version, client_capabilities=None, client_info=None, **_):
        return schema.InitializeResponse(protocol_version=PROTOCOL_VERSION)

    async def new_session(self, cwd, mcp_servers=None, **_):
        self.sessions += 1
        return schema.NewSessionResponse(session_id=f"s{self.sessions}")

    async def cancel(self, session_id, **_):
        pass

    async def prompt(self, session_id, prompt, **_):
        text = prompt[0].text
        if text == "ask":
            options = [schema.PermissionOption(option_id="y", name="Yes", kind="allow_once")]
            call = schema.ToolCallUpdate(tool_call_id="1", title="Delete")
            answer = await self.conn.request_permission(session_id=session_id, tool_call=call, options=options)
            text = answer.outcome.outcome
            await self.conn.session_update(session_id, chunk(text))
        else:
            for number in range(int(text)):
                await self.conn.session_update(session_id, chunk(f"{number} "))
        return schema.PromptResponse(stop_reason="end_turn")


def chunk(text):
    content = schema.TextContentBlock(type="text", text=text)
    return schema.AgentMessageChunk(session_update="agent_message_chunk", content=content)


def connected(connection):
    agent = Agent()
    agent.on_connect(connection)
    return agent


if len(sys.argv) > 1:
    import uvicorn
    from acp.http.asgi import create_asgi_app

    uvicorn.run(create_asgi_app(connected), host="127.0.0.1", port=int(sys.argv[1]), log_level="warning")
else:
    asyncio.run(run_agent(Agent()))
