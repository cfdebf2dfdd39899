"""Sessions that outlive their connection are loaded over a fresh one, whichever stream the client opens first."""

import json
from pathlib import Path

import anyio
import pytest

from acp_integration import AcpSession, PromptContext, RequestError, acp_agent, on
from tests.endpoint.driver import prompt, request

SCRIPT = Path(__file__).with_name("npm_load.mjs")


def remembering():
    """An agent that every connection shares what was said with."""
    said: dict[str, list[str]] = {}

    @acp_agent(name="remembering")
    class Remembering:
        @on.load_session
        async def load(self, session: AcpSession) -> None:
            if session.id not in said:
                raise RequestError(-32002, "Unknown session")
            for text in said[session.id]:
                await session.send_message(text)

        @on.prompt
        async def answer(self, turn: PromptContext) -> str:
            said.setdefault(turn.session.id, []).append(turn.text)
            return f"heard {turn.text}"

    return Remembering


async def test_the_typescript_client_loads_a_session_that_another_connection_made(
    serve, peers, peers_environ, open_process, tmp_path
):
    site = await serve(remembering())
    (tmp_path / "node_modules").symlink_to(peers)
    script = tmp_path / SCRIPT.name
    script.write_text(SCRIPT.read_text())
    url = f"http://127.0.0.1:{site.port}/acp"
    with anyio.fail_after(60):
        process = await open_process(peers / ".bin" / "node", script, url, env=peers_environ)
        output = b"".join([chunk async for chunk in process.stdout])
        assert await process.wait() == 0, b"".join([chunk async for chunk in process.stderr])
    assert json.loads(output) == {
        "failed": -32002,
        "replayed": [[True, "first"]],
        "stopReason": "end_turn",
        "last": "heard second",
    }


async def loaded(driver, *, stream_first):
    """Load a session over a fresh connection: what its stream and the connection's gave."""
    first = await driver.connection()
    session = await driver.session(first)
    stream = await driver.stream(first, session)
    await driver.post(prompt(session, "said", 1), first, session)
    with anyio.fail_after(5):
        await stream.until(lambda: 1 in stream.answers)
    second = await driver.connection()
    own = await driver.stream(second)
    opened = await driver.stream(second, session) if stream_first else None
    await driver.post(request("session/load", 2, sessionId=session, cwd="/", mcpServers=[]), second, session)
    with anyio.fail_after(5):
        await own.until(lambda: 2 in own.answers)
        if opened is not None:
            await opened.until_events(1)
    return second, session, own, opened


def said(stream):
    return [m["params"]["update"]["content"]["text"] for _, m in stream.events if m.get("method") == "session/update"]


async def test_the_replay_comes_on_the_stream_of_the_session_if_that_is_open(drive):
    _, _, own, opened = await loaded(await drive(remembering()), stream_first=True)
    assert said(opened) == ["said"]
    assert said(own) == []
    assert own.answers[2]["result"] == {}


@pytest.mark.parametrize("leaves", [False, True])
async def test_the_answer_waits_until_the_stream_of_the_session_has_taken_the_replay_or_is_gone(drive, leaves):
    driver = await drive(remembering())
    _, session, _, _ = await loaded(driver, stream_first=False)
    connection = await driver.connection()
    own, opened = await driver.stream(connection), await driver.stream(connection, session)
    opened.hold = True
    await driver.post(request("session/load", 2, sessionId=session, cwd="/", mcpServers=[]), connection, session)
    await driver.post(request("session/list", 3), connection)
    await anyio.wait_all_tasks_blocked()
    assert own.answers == {}
    assert said(opened) == []
    if leaves:
        opened.disconnect()
    opened.release()
    with anyio.fail_after(5):
        await own.until(lambda: {2, 3} <= own.answers.keys())
    assert leaves or said(opened) == ["said"]


async def test_the_replay_comes_before_its_answer_on_the_connection_stream_otherwise(drive):
    driver = await drive(remembering())
    connection, session, own, _ = await loaded(driver, stream_first=False)
    assert said(own) == ["said"]
    assert own.events[-1][1] is not None
    assert own.events[-1][1].get("id") == 2
    stream = await driver.stream(connection, session)
    await driver.post(prompt(session, "more", 3), connection, session)
    with anyio.fail_after(5):
        await stream.until(lambda: 3 in stream.answers)
    assert said(stream) == ["heard more"]


@pytest.mark.parametrize("stream_first", [True, False])
async def test_a_failed_load_leaves_the_connection_usable(drive, stream_first):
    driver = await drive(remembering())
    connection = await driver.connection()
    own = await driver.stream(connection)
    opened = await driver.stream(connection, "gone") if stream_first else None
    await driver.post(request("session/load", 1, sessionId="gone", cwd="/", mcpServers=[]), connection, "gone")
    with anyio.fail_after(5):
        await own.until(lambda: 1 in own.answers)
        assert own.answers[1]["error"]["code"] == -32002
        if opened is not None:
            await opened.ended.wait()
    own.disconnect()
    assert await driver.session(connection)
