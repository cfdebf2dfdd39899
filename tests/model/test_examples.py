"""The example agents do what they say, with a client that can do everything and with one that can do nothing."""

import pytest

from examples.agents import ProbeAgent
from examples.notebook import NotebookAgent

ANSWERS = {
    "fs/read_text_file": {"content": "in the file"},
    "fs/write_text_file": {},
    "terminal/create": {"terminalId": "t"},
    "terminal/wait_for_exit": {"exitCode": 0},
    "terminal/output": {"output": "hello", "truncated": False},
    "terminal/release": {},
    "elicitation/create": {"action": "accept", "content": {"name": "Ada"}},
}
WORDS = {
    "readfile:/a.txt": "in the file",
    "writefile:/a.txt": "written",
    "term:echo hello": "exit 0: hello",
    "plan": "planned",
    "elicit:form": "form:accept:Ada",
    "elicit:url": "url:accept",
    "image": "",
    "diff": "edited",
    "usage": "counted",
    "commands": "listed",
    "mode": "mode:ask options:[('model', 'fast'), ('voice', 'terse'), ('web', False)]",
}
NEED = {"readfile:/a.txt", "writefile:/a.txt", "term:echo hello", "elicit:form", "elicit:url"}


@pytest.mark.parametrize("word", WORDS)
async def test_the_probe_shows_everything_to_a_client_that_can(serve, everything, word):
    async with serve(ProbeAgent) as client:
        client.answers.update(ANSWERS)
        assert (await client.ask(word, **everything))["result"] == {"stopReason": "end_turn"}
        assert client.text == WORDS[word]
        if word == "elicit:url":
            assert client.log[-2]["params"] == {"elicitationId": "sign-in"}


@pytest.mark.parametrize("word", WORDS)
async def test_the_probe_sends_nothing_to_a_client_that_cannot(serve, word):
    async with serve(ProbeAgent) as client:
        answer = await client.ask(word)
        assert ("error" in answer) == (word in NEED)
        assert client.requests == []


async def test_a_notebook_is_found_again(serve):
    async with serve(NotebookAgent) as client:
        await client.initialize()
        session = await client.new_session("/x")
        await client.prompt(session, "buy milk")
        await client.call("session/close", sessionId=session)
        listed = await client.call("session/list")
        assert listed == {"sessions": [{"sessionId": session, "cwd": "/x", "title": "buy milk"}]}
        await client.call("session/load", sessionId=session, cwd="/x", mcpServers=[])
        assert [update["content"]["text"] for update in client.updates("user_message_chunk")] == ["buy milk"]
        await client.prompt(session, "/read")
        assert client.text.endswith("buy milk")
        await client.call("session/resume", sessionId=session, cwd="/x")
        await client.call("session/delete", sessionId=session)
        assert (await client.error("session/load", sessionId=session, cwd="/x", mcpServers=[]))["code"] == -32002
