"""The application that several workers serve: an agent that remembers its sessions in a file they share."""

import os

import anyio

from acp_integration import PromptContext, acp_agent, on
from acp_integration.assembly import AgentBuilder
from acp_integration.endpoint import AcpEndpoint, EndpointApplication
from acp_integration.options import BackplaneOptions, EndpointOptions
from acp_integration.store import open_store


@acp_agent
class Worker:
    """Counts up to what it is told, and says which process it runs in."""

    @on.prompt
    async def answer(self, turn: PromptContext) -> None:
        """``pid``, or a number of updates; with ``slow`` before it, one after the other."""
        if turn.text == "pid":
            await turn.send_message(str(os.getpid()))
            return
        for number in range(int(turn.text.removeprefix("slow "))):
            await turn.send_message(f"{number} ")
            if turn.text.startswith("slow "):
                await anyio.sleep(0.02)


builder = AgentBuilder(Worker, store=open_store(os.environ["ACP_TEST_STORE"]))
workers = BackplaneOptions(url=os.environ.get("ACP_TEST_BACKPLANE"), key="the key of these tests")
app = EndpointApplication(AcpEndpoint(builder.build_factory(), EndpointOptions(workers=workers)))
