"""The contract of `benchmarks/measures.py`: on stdio, or as the ASGI application of `benchmarks/agents/web.py`."""

from acp_integration import PromptContext, acp_agent, on


@acp_agent(name="echo", version="1.0.0")
class EchoAgent:
    @on.prompt
    async def prompt(self, turn: PromptContext) -> None:
        text = turn.text
        if text.startswith("stream:"):
            _, count, size = text.split(":")
            chunk = "x" * int(size)
            for _ in range(int(count)):
                await turn.send_message(chunk)
        else:
            await turn.send_message(text)
