"""A module that defines one agent."""

from acp_integration import PromptContext, acp_agent, on


@acp_agent
class OnlyAgent:
    @on.prompt
    async def answer(self, turn: PromptContext):
        return "the one"
