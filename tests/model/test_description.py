"""What a builder says it would serve."""

from acp_integration import PromptContext, SyncPromptContext, acp_agent, on
from acp_integration.assembly import AgentBuilder


@acp_agent("named", title="Title", version="1")
class Agent:
    @on.prompt
    async def answer(self, turn: PromptContext): ...
    @on.logout
    def logout(self): ...


@acp_agent
def function(turn: SyncPromptContext): ...


def test_a_description_names_agent_handlers_and_what_is_advertised():
    described = AgentBuilder(Agent).describe()
    assert described["agent"] == {"name": "named", "title": "Title", "version": "1", "class": f"{__name__}.Agent"}
    kinds = {handler["method"]: handler["kind"] for handler in described["handlers"]}
    assert kinds == {"initialize": "default", "logout": "sync", "session/new": "default", "session/prompt": "async"}
    assert f"{__name__}.Agent.answer" in [handler["name"] for handler in described["handlers"]]
    assert described["initialize"]["agentCapabilities"]["auth"] == {"logout": {}}


def test_a_function_is_named_by_itself():
    described = AgentBuilder(function).describe()
    assert described["handlers"][-1] == {"method": "session/prompt", "name": f"{__name__}.function", "kind": "sync"}
