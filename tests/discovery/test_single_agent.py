import pytest

from acp_integration import acp_agent
from acp_integration.discovery import AgentCandidate, candidate_of, require_single
from acp_integration.errors import DiscoveryError, SeveralAgents

KEYS = ["acp.agent.enabled", "spring.ai.acp.agent.enabled", "quarkus.acp.enabled"]


def declared(qualified):
    module, _, name = qualified.rpartition(".")
    return acp_agent(type(name, (), {"__module__": module}))


def candidate(qualified):
    found = declared(qualified)
    return AgentCandidate(found.__name__.lower(), found, found)


FORMS = {"candidates": candidate, "classes": declared, "names": str}


@pytest.mark.parametrize("form", FORMS)
def test_no_agent_is_an_application_that_only_drives_one(form):
    assert require_single([FORMS[form](name) for name in ()]) is None


@pytest.mark.parametrize("form", FORMS)
def test_one_agent_is_the_agent(form):
    only = FORMS[form]("shop.agents.Only")
    assert require_single(iter([only]), KEYS[0]) is only


@pytest.mark.parametrize("form", FORMS)
def test_several_agents_are_refused_and_listed_by_class_name(form):
    with pytest.raises(SeveralAgents) as raised:
        require_single([FORMS[form](name) for name in ("b.Second", "a.First")])
    assert str(raised.value) == (
        "Found 2 @acp_agent classes [a.First, b.Second], but an application serves one: "
        "remove @acp_agent from all but one"
    )
    assert raised.value.names == ("a.First", "b.Second")


@pytest.mark.parametrize("key", KEYS)
@pytest.mark.parametrize("form", FORMS)
def test_the_error_names_the_key_that_serves_none(form, key):
    with pytest.raises(SeveralAgents) as raised:
        require_single([FORMS[form](name) for name in ("c.Third", "b.Second", "a.First")], key)
    assert str(raised.value) == (
        "Found 3 @acp_agent classes [a.First, b.Second, c.Third], but an application serves one: "
        f"remove @acp_agent from all but one, or set {key}=false to serve none"
    )


@pytest.mark.parametrize("part", ["name", "agent_class", "supplier"])
def test_every_part_of_a_candidate_is_required(part):
    found = declared("a.First")
    parts = {"name": "first", "agent_class": found, "supplier": found, part: None}
    with pytest.raises(ValueError, match=f"needs a {part}"):
        AgentCandidate(**parts)


def test_the_supplier_is_called_when_the_instance_is_needed_and_only_once():
    made = []
    found = AgentCandidate("first", declared("a.First"), lambda: made.append(object()) or made[-1])
    assert require_single([found]) is found
    assert not made
    assert found.instance is found.instance
    assert len(made) == 1


def test_a_wrapped_instance_keeps_its_wrapping():
    class Proxy:
        def __init__(self, inner):
            self.inner = inner

    found = AgentCandidate("first", declared("a.First"), lambda: Proxy(declared("a.First")()))
    assert isinstance(found.instance, Proxy)
    assert found.agent_class.__qualname__ == "First"


def test_a_class_is_instantiated_once():
    found = candidate_of(declared("a.First"))
    assert found.name == "a.First"
    assert type(found.instance) is found.agent_class
    assert found.instance is found.instance


def test_a_ready_made_instance_is_served_as_it_is():
    agent = declared("a.First")()
    found = candidate_of(agent, "the agent")
    assert found.name == "the agent"
    assert found.agent_class is type(agent)
    assert found.instance is agent


def test_a_function_is_an_agent():
    @acp_agent
    def answer(turn):
        return turn.text

    assert candidate_of(answer).instance is answer


@pytest.mark.parametrize("what", [object, print, 5, None, lambda: None])
def test_what_is_not_declared_is_no_agent(what):
    with pytest.raises(DiscoveryError, match="is not marked with @acp_agent"):
        candidate_of(what, "it")


def test_a_subclass_of_an_agent_is_no_agent_until_it_is_declared():
    base = declared("a.First")
    subclass = type("Second", (base,), {"__module__": "b"})
    with pytest.raises(DiscoveryError, match=r"^b\.Second is not marked with @acp_agent$"):
        candidate_of(subclass)
    assert candidate_of(acp_agent(subclass)).name == "b.Second"
