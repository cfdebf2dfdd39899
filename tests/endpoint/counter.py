"""An agent whose updates are numbers, so that a test sees what is lost, repeated or out of order."""

from acp_integration import PromptContext, acp_agent, on


def numbered(events):
    """The texts of the message chunks, as numbers."""
    return [
        int(message["params"]["update"]["content"]["text"])
        for _, message in events
        if message.get("method") == "session/update"
    ]


@acp_agent(name="counter")
class Counter:
    """Prompted with a number, counts from 0 up to it."""

    @on.prompt
    async def answer(self, turn: PromptContext) -> None:
        for number in range(int(turn.text)):
            await turn.send_message(str(number))
