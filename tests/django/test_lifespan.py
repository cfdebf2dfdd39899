"""The endpoint lives in the server's lifespan, and so does whatever stands behind the wrapper."""

import asyncio
from pathlib import Path
from typing import Any

import anyio
import pytest
from channels.routing import ProtocolTypeRouter, URLRouter
from django.core.asgi import get_asgi_application
from django.test import override_settings
from django.urls import re_path

from acp_django.asgi import acp_asgi
from acp_django.serving import serving as process_serving
from tests.django.asgi_driver import (
    INITIALIZE,
    Exchange,
    event_stream,
    exchange,
    handshake,
    initialized,
    request,
    serving,
    socket,
)

STDIO = {"agent": {"transport": {"type": "stdio"}}}
TWO_BAD_KEYS = {"agent": {"request-timeuot": "3s", "cancel-grace-period": "soon"}}


async def start(app: Any) -> Exchange:
    """The lifespan of a server whose start fails."""
    opened = Exchange()
    await opened.tell(type="lifespan.startup")
    with anyio.fail_after(5):
        await opened.run(app, {"type": "lifespan"})
    return opened


@pytest.mark.parametrize(
    ("acp", "words"),
    [
        (STDIO, ["acp.agent.transport.type=stdio"]),
        (TWO_BAD_KEYS, ["acp.agent.request-timeout", "acp.agent.cancel-grace-period=soon"]),
        ({"serve": "tickets.models.Ticket"}, ["@acp_agent"]),
    ],
)
async def test_a_start_that_cannot_serve_fails_and_says_why(database: Path, acp: Any, words: list[str]) -> None:
    with override_settings(ACP=acp):
        failed = await start(acp_asgi(get_asgi_application()))
    assert [message["type"] for message in failed.sent] == ["lifespan.startup.failed"]
    assert all(word in failed.sent[0]["message"] for word in words), failed.sent


async def test_shutdown_ends_open_streams_and_sockets(database: Path) -> None:
    app = acp_asgi(get_asgi_application())
    async with exchange(app, {"type": "lifespan"}) as lifespan:
        await lifespan.tell(type="lifespan.startup")
        await lifespan.seen("lifespan.startup.complete")
        connection = await initialized(app)
        async with event_stream(app, acp_connection_id=connection) as stream, socket(app) as client:
            await lifespan.tell(type="lifespan.shutdown")
            await lifespan.seen("lifespan.shutdown.complete")
            assert (await client.exchange.seen("websocket.close"))["code"] == 1001
            assert stream.body.endswith(b": shutting down\n\n")
        assert (await request(app, "POST", body=INITIALIZE)).status == 503


async def test_the_end_of_the_lifespan_is_the_last_thing_it_does(database: Path) -> None:
    """A server may cancel the lifespan as soon as it was told of its end."""
    messages, finished = [{"type": "lifespan.startup"}, {"type": "lifespan.shutdown"}], anyio.Event()

    async def receive() -> Any:
        return messages.pop(0)

    async def live() -> None:
        task, loop = asyncio.current_task(), asyncio.get_running_loop()
        assert task is not None

        async def send(message: Any) -> None:
            if message["type"] == "lifespan.shutdown.complete":
                loop.call_soon(task.cancel)

        await acp_asgi(get_asgi_application())({"type": "lifespan"}, receive, send)
        finished.set()

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(live)
        with anyio.fail_after(5):
            await finished.wait()


async def test_an_application_behind_the_wrapper_has_its_own_lifespan(database: Path) -> None:
    heard: list[str] = []

    async def inner(scope: Any, receive: Any, send: Any) -> None:
        while True:
            message = await receive()
            heard.append(message["type"])
            await send({"type": f"{message['type']}.complete"})
            if message["type"] == "lifespan.shutdown":
                return

    async with serving(acp_asgi(inner)):
        assert heard == ["lifespan.startup"]
    assert heard == ["lifespan.startup", "lifespan.shutdown"]


async def test_a_start_that_fails_behind_the_wrapper_is_passed_on(database: Path) -> None:
    async def inner(scope: Any, receive: Any, send: Any) -> None:
        await receive()
        await send({"type": "lifespan.startup.failed", "message": "no database"})

    failed = await start(acp_asgi(inner))
    assert failed.sent == [{"type": "lifespan.startup.failed", "message": "no database"}]


async def test_without_a_lifespan_the_first_request_starts_the_endpoint(database: Path) -> None:
    app = acp_asgi(get_asgi_application())
    connection = await initialized(app)
    assert (await request(app, "DELETE", acp_connection_id=connection)).status == 202
    await process_serving().endpoint.aclose()


async def test_channels_routers_may_contain_the_wrapper(database: Path) -> None:
    wrapper = acp_asgi(get_asgi_application())
    app = ProtocolTypeRouter(
        {"http": wrapper, "websocket": URLRouter([re_path(r"^acp/?$", wrapper)]), "lifespan": wrapper}
    )
    async with serving(app):
        assert (await request(app, "POST", body=INITIALIZE)).status == 200
        async with socket(app) as client:
            assert await client.ask("hello") == ["echo: hello"]


async def test_the_wrapper_may_contain_channels_routers(database: Path) -> None:
    async def chat(scope: Any, receive: Any, send: Any) -> None:
        await receive()
        await send({"type": "websocket.accept", "subprotocol": "chat"})
        await send({"type": "websocket.close"})

    app = acp_asgi(ProtocolTypeRouter({"http": get_asgi_application(), "websocket": chat}))
    async with serving(app):
        async with socket(app) as client:
            assert await client.ask("hello") == ["echo: hello"]
        async with handshake(app, "/chat") as opened:
            assert (await opened.seen("websocket.accept"))["subprotocol"] == "chat"
