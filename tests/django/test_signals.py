"""Receivers hear of connections, sessions and turns, in order, and disturb nobody."""

import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import anyio
import pytest
from django.core.asgi import get_asgi_application
from django.dispatch import dispatcher
from tickets.acp_agents import TicketAgent
from tickets.models import Ticket

from acp_django import signals
from acp_django.asgi import acp_asgi
from tests.django.asgi_driver import BOUND, serving, socket
from tests.django.test_gate import log_in
from tests.runtime.raw_peer import process_peer

NAMES = {
    signals.connection_opened: "connection opened",
    signals.connection_closed: "connection closed",
    signals.session_created: "session created",
    signals.session_closed: "session closed",
    signals.turn_started: "turn started",
    signals.turn_finished: "turn finished",
}


@pytest.fixture
def connect() -> Iterator[Any]:
    """Connect a receiver to every signal for the time of a test."""
    connected = []

    def to_all(receiver: Any, sender: Any = TicketAgent) -> None:
        for signal in NAMES:
            signal.connect(receiver, sender=sender, weak=False)
            connected.append((signal, receiver, sender))

    yield to_all
    for signal, receiver, sender in connected:
        signal.disconnect(receiver, sender=sender)


async def converse(*texts: str, **headers: str) -> None:
    """A connection from its beginning to its end."""
    app = acp_asgi(get_asgi_application())
    async with serving(app), socket(app, **headers) as client:
        for text in texts:
            await client.ask(text)


async def test_sync_and_async_receivers_hear_everything_in_order(database: Path, connect: Any) -> None:
    heard: dict[str, list[tuple[str, Any]]] = {"sync": [], "async": []}

    def receive(signal: Any, **named: Any) -> None:
        heard["sync"].append((NAMES[signal], named["user"]))

    async def areceive(signal: Any, **named: Any) -> None:
        heard["async"].append((NAMES[signal], named["user"]))

    connect(receive)
    connect(areceive)
    ada, cookie = await log_in("ada")
    await converse("count", cookie=cookie)
    kinds = ["connection opened", "session created", "turn started", "turn finished", "connection closed"]
    assert heard["sync"] == heard["async"]
    assert [heard for heard in heard["sync"] if heard[0] in kinds] == [(kind, ada) for kind in kinds]


async def test_what_a_signal_comes_with(database: Path, connect: Any) -> None:
    heard: dict[str, dict[str, Any]] = {}
    connect(lambda signal, **named: heard.update({NAMES[signal]: named}))
    await converse("count")
    session = heard["session created"]["session_id"]
    assert heard["connection opened"]["user"] is None
    assert heard["connection opened"]["sender"] is TicketAgent
    assert heard["turn started"]["session_id"] == session
    finished = heard["turn finished"]
    assert finished.pop("seconds") >= 0
    assert finished.pop("cancelled") is False
    assert finished == heard["turn started"]


async def test_the_turn_of_a_client_that_leaves_is_cancelled(database: Path, connect: Any) -> None:
    heard: list[dict[str, Any]] = []
    connect(lambda signal, **named: heard.append({NAMES[signal]: named}))
    app = acp_asgi(get_asgi_application())
    async with serving(app), socket(app) as client:
        session = (await client.call("session/new", cwd="/", mcpServers=[]))["result"]["sessionId"]
        params = {"sessionId": session, "prompt": [{"type": "text", "text": "wait"}]}
        frame = {"jsonrpc": "2.0", "id": "left", "method": "session/prompt", "params": params}
        await client.exchange.tell(type="websocket.receive", text=json.dumps(frame))
        with anyio.fail_after(BOUND):
            while "waiting" not in str(client.exchange.sent):
                await anyio.sleep(0.01)
    (finished,) = [said["turn finished"] for said in heard if "turn finished" in said]
    assert finished["cancelled"] is True


async def test_a_sync_receiver_uses_the_orm(database: Path, connect: Any) -> None:
    connect(lambda signal, **_: Ticket.objects.create(title=NAMES[signal]))
    await converse("hello")
    assert await Ticket.objects.filter(title="turn finished").acount() == 1


async def test_a_receiver_that_fails_is_logged_and_disturbs_nobody(
    database: Path, connect: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    heard: list[str] = []
    logged: list[str] = []
    monkeypatch.setattr(dispatcher.logger, "error", lambda text, *_, **more: logged.append(str(more["exc_info"])))

    def fail(**_: Any) -> None:
        raise ValueError("broken on purpose")

    connect(fail)
    connect(lambda signal, **_: heard.append(NAMES[signal]))
    await converse("hello")
    assert "turn finished" in heard
    assert "broken on purpose" in logged[0]


async def test_an_agent_of_another_project_is_not_heard(database: Path, connect: Any) -> None:
    heard: list[str] = []
    connect(lambda signal, **_: heard.append(NAMES[signal]), sender=Ticket)
    await converse("hello")
    assert heard == []


async def test_a_process_on_stdio_ends_after_its_receivers_have_heard(
    open_process: Any, database: Path, project: Path
) -> None:
    environment = {**os.environ, "PROBE_ACP": json.dumps({"plugins": ["tickets.receivers.plugin"]})}
    command = [sys.executable, "-m", "acp_django", "stdio", "--app-dir", str(project)]
    async with process_peer(open_process, command, env=environment) as peer:
        await peer.initialize()
    assert await Ticket.objects.filter(title="connection closed").acount() == 1
