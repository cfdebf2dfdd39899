"""The plain view serves a project without the wrapper, as far as Django can."""

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from django.core.asgi import get_asgi_application
from django.test import AsyncClient, Client, TestCase
from tickets.models import Ticket

from acp_django.serving import serving
from tests.django.asgi_driver import INITIALIZE, event_stream, initialized, request

PING = {"jsonrpc": "2.0", "id": 1, "method": "session/new", "params": {"cwd": "/", "mcpServers": []}}


@pytest.fixture
async def plain(database: Path) -> AsyncIterator[Any]:
    """The project without the wrapper."""
    yield get_asgi_application()
    await serving().endpoint.aclose()


async def test_the_view_answers_requests_and_streams_events(plain: Any) -> None:
    connection = await initialized(plain)
    async with event_stream(plain, acp_connection_id=connection, accept_encoding="gzip") as stream:
        assert stream.headers["content-type"] == "text/event-stream"
        assert stream.headers["content-encoding"] == "identity"
        assert (await request(plain, "POST", body=PING, acp_connection_id=connection)).status == 202
        number = 1
        while b"sessionId" not in (await stream.seen("http.response.body", number))["body"]:
            number += 1
    assert (await request(plain, "DELETE", acp_connection_id=connection)).status == 202
    assert (await request(plain, "DELETE", acp_connection_id=connection)).status == 404


async def test_the_view_takes_large_bodies(plain: Any) -> None:
    connection = await initialized(plain)
    big = {**PING, "params": {**PING["params"], "_meta": {"padding": "x" * 4_000_000}}}
    assert (await request(plain, "POST", body=big, acp_connection_id=connection)).status == 202


async def test_errors_of_the_endpoint_pass_through(plain: Any) -> None:
    assert (await request(plain, "POST", body=PING)).status == 400
    assert (await request(plain, "PUT", body=PING)).status == 405


def test_under_wsgi_the_view_says_what_is_missing(database: Path) -> None:
    answer = Client().post("/acp", INITIALIZE, content_type="application/json")
    assert answer.status_code == 501
    assert "ASGI" in answer.json()["error"]


class InATestCase(TestCase):
    """What a project's own tests do; each runs in a transaction, and on an event loop of its own."""

    async def ask(self, text: str) -> str:
        """Hold one turn with Django's test client; everything that the session's stream says."""
        client, headers = AsyncClient(), {"accept": "text/event-stream"}
        answer = await client.post("/acp", INITIALIZE, content_type="application/json")
        headers["acp-connection-id"] = answer["Acp-Connection-Id"]
        await self.post(client, PING, headers)
        stream = await client.get("/acp", headers=headers)
        session = json.loads(await self.read(stream, "sessionId"))["result"]["sessionId"]
        stream.close()
        headers["acp-session-id"] = session
        prompt = {"sessionId": session, "prompt": [{"type": "text", "text": text}]}
        await self.post(client, {**PING, "id": 2, "method": "session/prompt", "params": prompt}, headers)
        stream = await client.get("/acp", headers=headers)
        said = await self.read(stream, "agent_message_chunk")
        stream.close()
        return said

    async def post(self, client: AsyncClient, body: Any, headers: Any) -> None:
        answer = await client.post("/acp", body, content_type="application/json", headers=headers)
        assert answer.status_code == 202

    async def read(self, stream: Any, word: str) -> str:
        async for piece in stream.streaming_content:
            if word in piece.decode():
                return next(line[6:] for line in piece.decode().splitlines() if line.startswith("data: "))
        raise AssertionError("the stream ended")

    async def test_a_handler_works_in_the_transaction_of_the_test(self) -> None:
        await Ticket.objects.acreate(title="of the test")
        assert "1 tickets" in await self.ask("count")

    async def test_what_a_handler_writes_is_rolled_back_with_the_test(self) -> None:
        assert "created one" in await self.ask("create one")
        assert await Ticket.objects.acount() == 1
