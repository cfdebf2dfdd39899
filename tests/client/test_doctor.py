"""The doctor: each thing that can be wrong with a configured agent is named, with what to do."""

import sys
from pathlib import Path

import pytest

from acp_integration.client.doctor import examine
from acp_integration.settings import AcpClientSettings

ROGUE = str(Path(__file__).parent / "agents" / "rogue.py")


def settings(*arguments, command=sys.executable, **more):
    stdio = {"command": command, "args": [ROGUE, *arguments]}
    return AcpClientSettings.from_mapping({"transport": {"stdio": stdio}, **more}, prefix="")


async def findings(configured, prefix="acp.client"):
    return [finding async for finding in examine(configured, prefix)]


async def test_a_good_agent_passes_every_step(bound):
    with bound(20):
        found = await findings(settings())
    assert [(finding.step, finding.ok) for finding in found] == [
        ("transport", True),
        ("initialize", True),
        ("session", True),
        ("close", True),
    ]


async def test_a_prompt_is_one_more_step_when_asked_for(bound):
    with bound(20):
        found = [str(finding) async for finding in examine(settings(), prompt="hi")]
    assert any("prompt: 1 updates, then end_turn" in text for text in found)


async def test_no_agent_names_the_keys_to_set():
    [finding] = await findings(AcpClientSettings(), "acp.clients.coder")
    assert not finding.ok
    assert "acp.clients.coder.transport.stdio.command" in finding.text


async def test_several_transports_are_one_failure():
    both = {"transport": {"stdio": {"command": "x"}, "http": {"uri": "http://x"}}}
    [finding] = await findings(AcpClientSettings.from_mapping(both, prefix=""))
    assert "choose one with acp.client.transport.type" in str(finding)


@pytest.mark.parametrize(
    ("configured", "step", "said"),
    [
        (settings(command="no-such-agent"), "initialize", "was not found"),
        (settings("dies", "initialize"), "initialize", "exited with code 3"),
        (settings("silent", "initialize", **{"initialize-timeout": "1s"}), "initialize", "check its arguments"),
        (settings("dies", "session/new"), "session", "exited with code 3"),
    ],
    ids=["no command", "exits", "does not speak", "exits later"],
)
async def test_what_is_wrong_is_named_at_its_step(configured, step, said, bound):
    with bound(30):
        *_, last = await findings(configured)
    assert (last.step, last.ok) == (step, False)
    assert said in last.text
    assert str(last).startswith("FAIL")


async def test_capabilities_of_the_settings_need_no_handlers_here(bound):
    with bound(20):
        found = await findings(settings(capabilities={"terminal": True}))
    assert all(finding.ok for finding in found)
