"""The contract of `benchmarks/measures.py` on the official Python SDK: on stdio, or as the ASGI application `app`."""

import asyncio
from typing import Any

from acp import PROTOCOL_VERSION, run_agent, update_agent_message_text
from acp.http.asgi import create_asgi_app
from acp.schema import InitializeResponse, NewSessionResponse, PromptResponse


class EchoAgent:
    def __init__(self, connection: Any = None) -> None:
        self.connection = connection
        self.sessions = 0

    def on_connect(self, connection: Any) -> None:
        self.connection = connection

    async def initialize(self, **_: Any) -> InitializeResponse:
        return InitializeResponse(protocol_version=PROTOCOL_VERSION)

    async def new_session(self, **_: Any) -> NewSessionResponse:
        self.sessions += 1
        return NewSessionResponse(session_id=f"s{self.sessions}")

    async def cancel(self, **_: Any) -> None:
        pass

    async def prompt(self, session_id: str, prompt: list[Any], **_: Any) -> PromptResponse:
        text = prompt[0].text
        if text.startswith("stream:"):
            _, count, size = text.split(":")
            chunk = "x" * int(size)
            for _ in range(int(count)):
                await self.connection.session_update(session_id, update_agent_message_text(chunk))
        else:
            await self.connection.session_update(session_id, update_agent_message_text(text))
        return PromptResponse(stop_reason="end_turn")


app = create_asgi_app(EchoAgent)

if __name__ == "__main__":
    asyncio.run(run_agent(EchoAgent()))
