"""Who is calling: by any class that the project plugs in, asked in order, on every transport."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import AnonymousUser, User
from django.core.asgi import get_asgi_application
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest
from django.test import override_settings

from acp_django.asgi import acp_asgi
from acp_django.auth import BearerToken, SessionAuthentication
from tests.django.asgi_driver import INITIALIZE, handshake, request, serving, socket

REMOTE = "192.0.2.1"


class AsyncKey:
    """A class of a project's own that awaits the database."""

    cookie = False

    async def authenticate(self, request: HttpRequest) -> Any:
        name = request.headers.get("X-Key")
        if name is None:
            return None
        try:
            return await User.objects.aget(username=name)
        except User.DoesNotExist:
            raise PermissionDenied("There is no such key") from None


class RestFailure(Exception):
    """As Django REST framework says that a proof is wrong."""

    status_code = 401


class RestKey:
    """As the classes of Django REST framework are: a pair, or their own exception."""

    def authenticate(self, request: HttpRequest) -> Any:
        name = request.headers.get("X-Rest")
        if name == "broken":
            raise RestFailure("no such token")
        return None if name is None else (User.objects.get(username=name), "what it was proved with")


WAYS = [AsyncKey, RestKey, BearerToken, SessionAuthentication]


@pytest.fixture
async def app(database: Path) -> AsyncIterator[Any]:
    await User.objects.acreate(username="ada")
    with override_settings(ACP={"authentication": WAYS}):
        application = acp_asgi(get_asgi_application())
        async with serving(application):
            yield application


@pytest.mark.parametrize("proof", [{"x_key": "ada"}, {"x_rest": "ada"}])
async def test_a_class_of_the_projects_own_names_the_user(app: Any, proof: dict[str, str]) -> None:
    async with socket(app, peer=REMOTE, **proof) as client:
        assert await client.ask("whoami") == ["ada"]


@asynccontextmanager
async def refused_handshake(app: Any, **headers: str) -> AsyncIterator[int]:
    async with handshake(app, **headers) as opened:
        closed = await opened.seen("websocket.close")
        yield closed["code"]


@pytest.mark.parametrize(
    ("proof", "status"),
    [
        ({}, 403),
        ({"x_key": "eve"}, 401),
        ({"x_rest": "broken"}, 401),
        ({"authorization": "Bearer nonsense"}, 401),
        ({"cookie": "sessionid=nonsense"}, 403),
    ],
)
async def test_nothing_of_the_agent_is_reachable_without_a_proof(app: Any, proof: dict[str, str], status: int) -> None:
    for method, body in (("POST", INITIALIZE), ("GET", None), ("DELETE", None)):
        answer = await request(app, method, body=body, peer=REMOTE, **proof)
        assert (method, answer.status) == (method, status)
        assert answer.headers["content-type"].startswith(("application/json", "text/plain"))
        assert "acp-connection-id" not in answer.headers
    async with refused_handshake(app, peer=REMOTE, **proof) as code:
        assert code == 1008


async def test_an_error_of_the_class_itself_lets_nobody_in(app: Any) -> None:
    answer = await request(app, "POST", body=INITIALIZE, peer=REMOTE, x_rest="nobody")
    assert answer.status == 500
    assert b"DoesNotExist" not in answer.body


def test_an_anonymous_user_is_nobody() -> None:
    found = HttpRequest()
    found.user = AnonymousUser()
    assert SessionAuthentication().authenticate(found) is None
