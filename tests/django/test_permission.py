"""A project decides for each session, on every transport, whether it may be opened."""

from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core.asgi import get_asgi_application
from django.test import override_settings
from tickets.models import Ticket

from acp_django.asgi import acp_asgi
from tests.django.asgi_driver import serving, socket
from tests.django.test_gate import log_in


@pytest.mark.parametrize("name", ["only_with_a_ticket", "only_with_a_ticket_async"])
async def test_a_session_opens_only_for_a_user_whom_the_project_permits(database: Path, name: str) -> None:
    _, ada = await log_in("ada")
    _, eve = await log_in("eve")
    await Ticket.objects.acreate(title="ada")
    with override_settings(ACP={"permission": f"tickets.permissions.{name}"}):
        app = acp_asgi(get_asgi_application())
        async with serving(app):
            assert await answer(app, cookie=ada) is None
            assert await answer(app, cookie=eve) == (-32600, "Permission denied")
            assert await answer(app) == (-32000, "Authentication required")


async def answer(app: Any, **headers: str) -> tuple[int, str] | None:
    """The error that a new session is answered with."""
    async with socket(app, **headers) as client:
        answered = await client.call("session/new", cwd="/", mcpServers=[])
    error = answered.get("error")
    return None if error is None else (error["code"], error["message"])


async def test_a_permission_that_fails_opens_nothing(database: Path) -> None:
    with override_settings(ACP={"permission": fail}):
        app = acp_asgi(get_asgi_application())
        async with serving(app):
            assert (await answer(app) or (0, ""))[0] == -32603


def fail(user: User | None, call: Any) -> bool:
    raise ValueError("broken on purpose")
