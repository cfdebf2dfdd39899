"""Django's own chain judges every request for the agent once, and then lets go of it."""

import asyncio
import json
import threading
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest
from asgiref.sync import sync_to_async
from django.conf import settings
from django.contrib.auth.models import User
from django.core.asgi import get_asgi_application
from django.db import connections
from django.test import Client, override_settings

from acp_django.asgi import acp_asgi
from acp_django.auth import BearerToken
from tests.django import middlewares
from tests.django.asgi_driver import (
    INITIALIZE,
    event_stream,
    exchange,
    handshake,
    initialized,
    request,
    scope_of,
    serving,
    socket,
)
from tests.django.test_executor import open_files

BEARER = {"authentication": ["acp_django.auth.BearerToken", "acp_django.auth.SessionAuthentication"]}
IDLE = 200
HANDFUL = 5
PING = {"jsonrpc": "2.0", "id": 1, "method": "session/new", "params": {"cwd": "/", "mcpServers": []}}


@pytest.fixture
async def app(database: Path) -> AsyncIterator[Any]:
    """The project's application inside the lifespan of a server."""
    application = acp_asgi(get_asgi_application())
    async with serving(application):
        yield application


@sync_to_async
def log_in(name: str) -> tuple[User, str]:
    """A user, and the cookie of a browser in which they are logged in."""
    user = User.objects.create_user(name, password="secret")
    browser = Client()
    browser.force_login(user)
    return user, f"{settings.SESSION_COOKIE_NAME}={browser.cookies[settings.SESSION_COOKIE_NAME].value}"


async def test_a_local_peer_is_served_without_a_user(app: Any) -> None:
    await initialized(app)


async def test_a_remote_peer_without_a_user_is_refused_naming_the_setting(app: Any) -> None:
    answer = await request(app, "POST", body=INITIALIZE, peer="192.0.2.1")
    assert answer.status == 403
    assert b"acp.agent.transport.http.require-auth" in answer.body


async def test_a_user_who_is_logged_in_reaches_the_handler(app: Any) -> None:
    _, cookie = await log_in("ada")
    async with socket(app, cookie=cookie, peer="192.0.2.1") as client:
        assert await client.ask("whoami") == ["ada"]


async def test_a_connection_belongs_to_its_user(app: Any) -> None:
    _, ada = await log_in("ada")
    _, eve = await log_in("eve")
    connection = await initialized(app, cookie=ada)
    assert (await request(app, "POST", body=PING, cookie=ada, acp_connection_id=connection)).status == 202
    for other in ({"cookie": eve}, {}):
        assert (await request(app, "POST", body=PING, acp_connection_id=connection, **other)).status == 404
        assert (await request(app, "DELETE", acp_connection_id=connection, **other)).status == 404


@override_settings(ACP=BEARER)
async def test_a_bearer_token_names_a_user_until_the_password_changes(app: Any) -> None:
    user, _ = await log_in("ada")
    token = BearerToken.make(user)
    async with socket(app, authorization=f"Bearer {token}", peer="192.0.2.1") as client:
        assert await client.ask("whoami") == ["ada"]
    user.set_password("another")
    await user.asave()
    assert (await request(app, "POST", body=INITIALIZE, authorization=f"Bearer {token}")).status == 401


@override_settings(ACP=BEARER)
@pytest.mark.parametrize("token", ["nonsense", "", "a:b:c"])
async def test_a_bad_bearer_token_is_refused_in_json(app: Any, token: str) -> None:
    for method, body in (("POST", INITIALIZE), ("GET", None), ("DELETE", None)):
        answer = await request(app, method, body=body, authorization=f"Bearer {token}")
        assert (answer.status, answer.json()) == (401, {"error": "Authentication required"})
        assert answer.headers["www-authenticate"] == "Bearer"


@override_settings(ACP=BEARER)
async def test_a_token_of_a_user_who_was_switched_off_is_refused(app: Any) -> None:
    user, _ = await log_in("ada")
    user.is_active = False
    await user.asave()
    answer = await request(app, "POST", body=INITIALIZE, authorization=f"Bearer {BearerToken.make(user)}")
    assert answer.status == 401


@pytest.mark.parametrize("append_slash", [True, False])
@pytest.mark.parametrize("path", ["/acp", "/acp/"])
async def test_both_spellings_of_the_path_are_served_without_a_redirect(app: Any, path: str, append_slash: Any) -> None:
    with override_settings(APPEND_SLASH=append_slash):
        application = acp_asgi(get_asgi_application())
        async with serving(application):
            assert (await request(application, "POST", path, body=INITIALIZE)).status == 200
            async with socket(application, path) as client:
                assert await client.ask("hello") == ["echo: hello"]


@pytest.mark.parametrize(
    ("origin", "served"),
    [
        ("http://testserver", True),
        ("https://app.example.com", True),
        ("https://any.example.org", True),
        ("https://evil.example", False),
        ("http://localhost:3000", False),
        ("null", False),
    ],
)
@override_settings(CSRF_TRUSTED_ORIGINS=["https://app.example.com", "https://*.example.org"])
async def test_a_page_acts_for_a_logged_in_user_only_from_a_trusted_origin(app: Any, origin: str, served: Any) -> None:
    _, cookie = await log_in("ada")
    connection = await initialized(app, cookie=cookie)
    for method, body in (("POST", PING), ("DELETE", None)):
        answer = await request(app, method, body=body, cookie=cookie, origin=origin, acp_connection_id=connection)
        assert answer.status == (202 if served else 403)
        assert served or answer.json() == {"error": "Origin not allowed"}
    async with handshake(app, cookie=cookie, origin=origin) as opened:
        await opened.seen("websocket.accept" if served else "websocket.close")


async def test_an_origin_that_no_rule_knows_is_refused_without_a_cookie_too(app: Any) -> None:
    assert (await request(app, "POST", body=INITIALIZE, origin="https://evil.example")).status == 403


async def test_a_host_that_django_does_not_serve_is_refused_in_json(app: Any) -> None:
    answer = await request(app, "POST", body=INITIALIZE, host="evil.example")
    assert (answer.status, answer.json()) == (400, {"error": "Bad Request"})


async def test_a_refused_handshake_is_answered_where_the_server_can_send_an_answer(app: Any) -> None:
    _, cookie = await log_in("ada")
    headers = {"cookie": cookie, "origin": "https://evil.example"}
    async with handshake(app, **headers) as opened:
        assert (await opened.seen("websocket.close"))["code"] == 1008
    scope = scope_of("websocket", "GET", "/acp", headers, extensions={"websocket.http.response": {}})
    async with exchange(app, scope) as opened:
        await opened.tell(type="websocket.connect")
        assert (await opened.seen("websocket.http.response.start"))["status"] == 403
        await opened.seen("websocket.http.response.body")
        assert opened.json() == {"error": "Origin not allowed"}


async def test_what_middleware_sets_reaches_the_handler_and_the_client(app: Any) -> None:
    async with socket(app, x_tenant="acme") as client:
        assert await client.ask("tenant") == ["acme"]
        accepted = client.exchange.sent[0]
    assert (b"x-tenant-seen", b"acme") in accepted["headers"]
    answer = await request(app, "POST", body=INITIALIZE, x_tenant="acme")
    assert answer.headers["x-tenant-seen"] == "acme"
    assert answer.headers["x-frame-options"] == "DENY"
    assert answer.headers["content-type"] == "application/json"


@override_settings(SESSION_SAVE_EVERY_REQUEST=True)
async def test_cookies_that_django_refreshes_reach_the_client(app: Any) -> None:
    _, cookie = await log_in("ada")
    answer = await request(app, "POST", body=INITIALIZE, cookie=cookie)
    assert settings.SESSION_COOKIE_NAME in [value.partition("=")[0] for value in answer.cookies]


@pytest.mark.parametrize(
    ("changes", "status"),
    [
        ({"SECURE_SSL_REDIRECT": True}, 400),
        ({"MIDDLEWARE": ["tests.django.middlewares.log_in_first"]}, 401),
        ({"MIDDLEWARE": ["tests.django.middlewares.forbid"]}, 403),
        ({"MIDDLEWARE": ["tests.django.middlewares.fail"]}, 500),
    ],
)
async def test_a_page_or_redirect_of_a_middleware_becomes_a_json_error(
    database: Path, changes: Any, status: int
) -> None:
    with override_settings(**changes):
        application = acp_asgi(get_asgi_application())
        answer = await request(application, "POST", body=INITIALIZE)
        assert answer.status == status
        assert "location" not in answer.headers
        assert set(answer.json()) == {"error"}
        async with handshake(application) as opened:
            await opened.seen("websocket.close")


@override_settings(MIDDLEWARE=["tests.django.middlewares.count"])
async def test_the_chain_runs_once_for_each_request_and_handshake(database: Path) -> None:
    middlewares.seen.clear()
    application = acp_asgi(get_asgi_application())
    async with serving(application):
        await initialized(application)
        async with socket(application):
            pass
    assert middlewares.seen == ["POST", "GET"]


@asynccontextmanager
async def idle_stream(app: Any, cookie: str) -> AsyncIterator[None]:
    connection = await initialized(app, cookie=cookie)
    async with event_stream(app, cookie=cookie, acp_connection_id=connection):
        yield


@pytest.mark.parametrize("idle", [idle_stream, socket], ids=["streams", "sockets"])
@override_settings(ACP={"agent": {"transport": {"http": {"max-connections-per-principal": IDLE}}}})
async def test_idle_streams_hold_no_thread_and_no_database_connection(
    idle: Any, database: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(connections["default"].settings_dict, "CONN_MAX_AGE", None)
    asyncio.get_running_loop().set_debug(enabled=False)  # which makes hundreds of requests five times as slow
    _, cookie = await log_in("ada")
    await sync_to_async(connections.close_all)()
    application = acp_asgi(get_asgi_application())
    async with serving(application), AsyncExitStack() as streams:
        threads, files = threading.active_count(), open_files(database)
        for _ in range(IDLE):
            await streams.enter_async_context(idle(application, cookie=cookie))
        assert threading.active_count() <= threads + HANDFUL
        assert open_files(database) == files


async def frame_with(stream: Any, word: str) -> Any:
    """The first frame on an event stream in which a word stands."""
    with anyio.fail_after(5):
        while True:
            lines = stream.body.decode().split("\n")[:-1]
            found = [line.removeprefix("data: ") for line in lines if line.startswith("data: ") and word in line]
            if found:
                return json.loads(found[0])
            await anyio.sleep(0.01)


@override_settings(ACP={"agent": {"sync-threads": 1}})
async def test_a_turn_that_waits_for_its_client_does_not_keep_it_out(database: Path) -> None:
    _, cookie = await log_in("ada")
    app = acp_asgi(get_asgi_application())
    async with serving(app), AsyncExitStack() as streams:
        headers = {"cookie": cookie, "acp_connection_id": await initialized(app, cookie=cookie)}
        stream = await streams.enter_async_context(event_stream(app, **headers))
        await request(app, "POST", body=PING, **headers)
        session = (await frame_with(stream, "sessionId"))["result"]["sessionId"]
        headers["acp_session_id"] = session
        stream = await streams.enter_async_context(event_stream(app, **headers))
        params = {"sessionId": session, "prompt": [{"type": "text", "text": "perm"}]}
        await request(app, "POST", body={**PING, "id": 2, "method": "session/prompt", "params": params}, **headers)
        asked = await frame_with(stream, "session/request_permission")
        answer = {"outcome": {"outcome": "selected", "optionId": "y"}}
        said = await request(app, "POST", body={"jsonrpc": "2.0", "id": asked["id"], "result": answer}, **headers)
        assert said.status == 202
        assert "y" in (await frame_with(stream, "permission:"))["params"]["update"]["content"]["text"]


async def test_events_are_neither_compressed_nor_held_back(app: Any) -> None:
    connection = await initialized(app)
    async with event_stream(app, acp_connection_id=connection, accept_encoding="gzip") as stream:
        assert "content-encoding" not in stream.headers
        await request(app, "POST", body=PING, acp_connection_id=connection)
        with anyio.fail_after(5):
            while b"sessionId" not in stream.body:
                await anyio.lowlevel.checkpoint()


async def test_a_message_may_be_larger_than_djangos_upload_limit(app: Any) -> None:
    connection = await initialized(app)
    big = {**PING, "params": {**PING["params"], "_meta": {"padding": "x" * (settings.DATA_UPLOAD_MAX_MEMORY_SIZE + 1)}}}
    assert (await request(app, "POST", body=big, acp_connection_id=connection)).status == 202


async def test_transactions_around_every_request_do_not_disturb(app: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(connections["default"].settings_dict, "ATOMIC_REQUESTS", 1)
    async with socket(app) as client:
        assert await client.ask("create one") == ["created one"]


async def test_all_other_paths_stay_djangos(app: Any) -> None:
    answer = await request(app, "GET", "/plain/", accept_encoding="gzip")
    assert (answer.status, answer.body) == (200, b"a plain view")
    assert (await request(app, "GET", "/acp/other")).status == 404


async def test_a_socket_to_any_other_path_is_closed_without_an_error(app: Any) -> None:
    async with handshake(app, "/elsewhere") as opened:
        await opened.seen("websocket.close")


@override_settings(ACP={"agent": {"enabled": False}})
async def test_an_agent_that_is_switched_off_is_not_there(database: Path) -> None:
    application = acp_asgi(get_asgi_application())
    async with serving(application):
        answer = await request(application, "POST", body=INITIALIZE)
        assert (answer.status, answer.json()) == (404, {"error": "Not found"})


@pytest.mark.parametrize("accept", ["*/*", "text/event-stream", "text/*, application/json"])
async def test_a_client_that_accepts_anything_gets_its_events(app: Any, accept: str) -> None:
    connection = await initialized(app)
    async with event_stream(app, acp_connection_id=connection, accept=accept) as stream:
        assert stream.status == 200
