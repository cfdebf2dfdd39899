"""An agent that shows what a session store gives it: what was said before, and state of its own."""

import asyncio
from contextlib import suppress

from acp_integration import AcpSession, PromptContext, acp_agent, on

CONFIG = [{"id": "m", "name": "M", "options": [{"value": value, "name": value} for value in "ab"]}]


@acp_agent(name="remembering", version="1.0.0", modes=["ask", "code"], config_options=CONFIG)
class Remembering:
    """The first word of a prompt chooses: `first` says what was said first, `count` which turn this is."""

    def __init__(self) -> None:
        self.latest: AcpSession | None = None

    @on.prompt
    async def answer(self, turn: PromptContext) -> None:
        self.latest, state = turn.session, turn.session.state
        state["turns"] = state.get("turns", 0) + 1
        word, _, argument = turn.text.partition(":")
        await getattr(self, f"_{word}", self._echo)(turn, argument)

    async def _echo(self, turn: PromptContext, _: str) -> None:
        await turn.send_message(f"echo: {turn.text}")

    async def _first(self, turn: PromptContext, _: str) -> None:
        said = [update.text for update in await turn.session.history() if update.kind == "user_message_chunk"]
        await turn.send_message(f"You first said: {said[0]}")

    async def _count(self, turn: PromptContext, _: str) -> None:
        await turn.send_message(f"This is turn {turn.session.state['turns']}")

    async def _talk(self, turn: PromptContext, count: str) -> None:
        for number in range(int(count)):
            if number % 50 == 49:
                async with turn.tool_call(f'tool "{number}"', kind="read"):
                    await asyncio.sleep(0.001)
            elif number % 20 == 19:
                await turn.send_thought(f"thought {number};")
            elif number % 31 == 30:
                await turn.send_message(f"m{number};", message_id=f"message {number // 31}")
            else:
                await turn.send_message(f'"{number}";' if number % 7 == 0 else f"{number};")
            if number % 10 == 0:
                await asyncio.sleep(0.001)

    async def _title(self, turn: PromptContext, title: str) -> None:
        await turn.send_session_info(title=title)

    async def _ask(self, turn: PromptContext, _: str) -> None:
        await turn.send_message("before the question")
        await turn.ask_permission("do it")

    async def _stubborn(self, turn: PromptContext, _: str) -> None:
        await turn.send_message("stubborn")
        left = 200
        while left:
            with suppress(asyncio.CancelledError):
                await turn.send_message(".")
                await asyncio.sleep(0.001)
            left -= turn.is_cancelled

    async def _wait(self, turn: PromptContext, _: str) -> None:
        await turn.send_message("waiting")
        await turn.wait_cancelled()

    async def _unsayable(self, turn: PromptContext, _: str) -> None:
        turn.session.state["bad"] = object()
