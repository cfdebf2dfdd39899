"""The application that several workers serve: an agent that remembers its sessions in a file they share."""

import os

from acp_integration import PromptContext, acp_agent, on
from acp_integration.assembly import AgentBuilder
from acp_integration.endpoint import AcpEndpoint, EndpointApplication
from acp_integration.options import EndpointOptions
from acp_integration.store import open_store


@acp_agent
class Worker:
    """Counts up to what it is told, and says which process it runs in."""

    @on.prompt
    async def answer(self, turn: PromptContext) -> None:
        """``pid``, or a number of updates."""
        if turn.text == "pid":
            await turn.send_message(str(os.getpid()))
            return
        for number in range(int(turn.text)):
            await turn.send_message(f"{number} ")


builder = AgentBuilder(Worker, store=open_store(os.environ["ACP_TEST_STORE"]))
app = EndpointApplication(AcpEndpoint(builder.build_factory(), EndpointOptions()))
