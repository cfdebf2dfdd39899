"""A client on the network names no command to run, and no directory outside the roots."""

import json

import anyio
import pytest

from tests.endpoint.driver import request, scope_of

COMMAND = {"name": "evil", "command": "touch", "args": ["x.txt"], "env": []}
REMOTE = {"type": "http", "name": "ok", "url": "https://mcp.example", "headers": []}


async def answer_to(driver, method, **params):
    connection = await driver.connection()
    stream = await driver.stream(connection)
    assert (await driver.post(request(method, 1, **params), connection)).status == 202
    with anyio.fail_after(5):
        await stream.until(lambda: 1 in stream.answers)
    return stream.answers[1]


@pytest.mark.parametrize("server", [COMMAND, {**COMMAND, "type": "stdio"}, {**COMMAND, "type": "http"}, {"name": "x"}])
@pytest.mark.parametrize("method", ["session/new", "session/load", "session/resume", "session/fork"])
async def test_a_server_that_runs_a_command_is_refused_with_its_place(drive, method, server):
    driver = await drive()
    answer = await answer_to(driver, method, sessionId="s", cwd="/", mcpServers=[server])
    assert answer["error"]["code"] == -32602
    assert "mcpServers[0]" in answer["error"]["message"]
    assert "acp.agent.transport.http.allow-stdio-mcp-servers" in answer["error"]["message"]
    assert "touch" not in json.dumps(answer)


async def test_it_is_let_through_where_that_is_allowed(drive):
    driver = await drive(allow_stdio_mcp_servers=True)
    answer = await answer_to(driver, "session/new", cwd="/", mcpServers=[COMMAND])
    assert answer["result"]["sessionId"]


async def test_a_duplicate_member_hides_nothing(drive):
    driver = await drive()
    connection = await driver.connection()
    stream = await driver.stream(connection)
    params = f'{{"cwd":"/","mcpServers":[],"mcpServers":[{json.dumps(COMMAND)}]}}'
    body = f'{{"jsonrpc":"2.0","id":1,"method":"session/new","params":{params}}}'
    await driver.post(body.encode(), connection)
    with anyio.fail_after(5):
        await stream.until(lambda: 1 in stream.answers)
    assert stream.answers[1]["error"]["code"] == -32602


async def test_it_is_refused_on_a_socket_too(drive):
    driver = await drive()
    call = driver.open({**scope_of(), "type": "websocket"}, {"type": "websocket.connect"})
    call.bring({"type": "websocket.receive", "text": json.dumps(request("initialize", 0, protocolVersion=1))})
    new = request("session/new", 1, cwd="/", mcpServers=[COMMAND])
    call.bring({"type": "websocket.receive", "text": json.dumps(new)})
    with anyio.fail_after(5):
        await call.until(lambda: len(call.sent) == 3)
    answers = {answer["id"]: answer for answer in (json.loads(message["text"]) for message in call.sent[1:])}
    assert answers[1]["error"]["code"] == -32602


@pytest.fixture
def roots(tmp_path):
    (tmp_path / "in" / "project").mkdir(parents=True)
    (tmp_path / "out").mkdir()
    (tmp_path / "in" / "link").symlink_to(tmp_path / "out")
    return tmp_path


@pytest.mark.parametrize("inside", ["in", "in/project", "in/project/..", "in/nowhere"])
async def test_a_directory_inside_the_roots_is_let_through(drive, roots, inside):
    driver = await drive(roots=(str(roots / "in"),))
    assert "result" in await answer_to(driver, "session/new", cwd=str(roots / inside), mcpServers=[])


@pytest.mark.parametrize("outside", ["out", "in/../out", "in/link", "in/link/x", "inner", ""])
async def test_a_directory_outside_the_roots_is_refused_without_repeating_it(drive, roots, outside):
    driver = await drive(roots=(str(roots / "in"),))
    answer = await answer_to(driver, "session/new", cwd=str(roots / outside), mcpServers=[])
    assert answer["error"]["code"] == -32602
    assert "cwd" in answer["error"]["message"]
    assert "acp.agent.transport.http.roots" in answer["error"]["message"]
    assert str(roots) not in json.dumps(answer)


async def test_additional_directories_are_confined_too(drive, roots):
    driver = await drive(roots=(str(roots / "in"),))
    directories = [str(roots / "in"), str(roots / "out")]
    answer = await answer_to(driver, "session/new", cwd=str(roots / "in"), additionalDirectories=directories)
    assert answer["error"]["code"] == -32602
    assert "additionalDirectories[1]" in answer["error"]["message"]


async def test_a_refused_load_leaves_the_connection_usable(drive):
    driver = await drive()
    connection = await driver.connection()
    await driver.post(request("session/load", 1, sessionId="s", cwd="/", mcpServers=[COMMAND]), connection)
    assert await driver.session(connection)
