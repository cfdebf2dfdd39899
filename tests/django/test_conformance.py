"""The suite that judges every way of serving, over a Django project."""

import os
import sys
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
from django.core.asgi import get_asgi_application
from django.test import override_settings
from hypercorn.asyncio import serve
from hypercorn.config import Config

from acp_django.asgi import acp_asgi
from acp_integration.testing.conformance import Cell
from acp_integration.testing.conformance.suite import *  # noqa: F403
from tests.conformance.cells import free_port, under_uvicorn, until_up

PROJECT = Path(__file__).resolve().parent / "project"
PROBE = {"serve": "examples.agents.ProbeAgent"}
VARIABLES = {
    "DJANGO_SETTINGS_MODULE": "probe_project.probe",
    "PYTHONPATH": os.pathsep.join([str(PROJECT.parents[2]), os.environ.get("PYTHONPATH", "")]),
}


def application() -> Any:
    return acp_asgi(get_asgi_application())


@asynccontextmanager
async def uvicorn() -> AsyncIterator[str]:
    with override_settings(ACP=PROBE):
        async with under_uvicorn(application()) as url:
            yield url


@asynccontextmanager
async def hypercorn() -> AsyncIterator[str]:
    port, ending = await free_port(), anyio.Event()
    config = Config()
    config.bind, config.errorlog = [f"127.0.0.1:{port}"], None
    with override_settings(ACP=PROBE):
        async with anyio.create_task_group() as tasks:
            app: Any = application()
            tasks.start_soon(lambda: serve(app, config, shutdown_trigger=ending.wait))
            await until_up(f"http://127.0.0.1:{port}/plain/")
            yield f"http://127.0.0.1:{port}/acp"
            ending.set()


def command(*words: str) -> Callable[[], AbstractAsyncContextManager[Sequence[str]]]:
    @asynccontextmanager
    async def start() -> AsyncIterator[Sequence[str]]:
        variables = [f"{name}={value}" for name, value in VARIABLES.items()]
        yield ["env", *variables, sys.executable, *(word.format(project=PROJECT) for word in words)]

    return start


def server(*words: str) -> Callable[[], AbstractAsyncContextManager[str]]:
    @asynccontextmanager
    async def start() -> AsyncIterator[str]:
        port = await free_port()
        arguments = [word.format(port=port) for word in words]
        environment = {**os.environ, **VARIABLES}
        process = await anyio.open_process(
            [sys.executable, "-m", *arguments], cwd=PROJECT, env=environment, stdout=None, stderr=None
        )
        try:
            await until_up(f"http://127.0.0.1:{port}/plain/")
            yield f"http://127.0.0.1:{port}/acp"
        finally:
            process.terminate()
            with anyio.move_on_after(10, shield=True):
                await process.aclose()

    return start


granian = server("granian", "--interface", "asgi", "--port", "{port}", "probe_project.asgi:application")
daphne = server("daphne", "-p", "{port}", "probe_project.asgi:application")

CELLS = [
    Cell(
        name="stdio-module",
        transport="stdio",
        host=command("-m", "acp_django", "stdio", "--app-dir", "{project}"),
    ),
    Cell(name="stdio-command", transport="stdio", host=command("{project}/manage.py", "acp_stdio"), smoke=True),
    Cell(name="stdio-words", transport="stdio", host=command("{project}/manage.py", "acp", "stdio"), smoke=True),
    Cell(
        name="stdio-django-admin",
        transport="stdio",
        host=command("-m", "django", "acp_stdio", "--pythonpath", "{project}", "--settings", "probe_project.probe"),
        smoke=True,
    ),
    Cell(name="uvicorn-http", transport="http", host=uvicorn),
    Cell(name="uvicorn-websocket", transport="websocket", host=uvicorn),
    Cell(name="hypercorn-http", transport="http", host=hypercorn),
    Cell(name="hypercorn-websocket", transport="websocket", host=hypercorn),
    Cell(name="granian-http", transport="http", host=granian, smoke=True),
    Cell(name="granian-websocket", transport="websocket", host=granian, smoke=True),
    Cell(name="daphne-http", transport="http", host=daphne, smoke=True),
    Cell(name="daphne-websocket", transport="websocket", host=daphne, smoke=True),
]
