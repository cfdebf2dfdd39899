"""The conformance suite, over every way in which a FastAPI application serves an agent."""

import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from functools import partial

import anyio
from hypercorn.asyncio import serve
from hypercorn.config import Config

from acp_integration.testing.conformance import Cell
from acp_integration.testing.conformance.suite import *  # noqa: F403
from examples.fastapi_app.main import app
from tests.conformance.cells import REPO_ROOT, free_port, under_uvicorn, until_up

APP = "examples.fastapi_app.main:app"


@asynccontextmanager
async def as_process() -> AsyncIterator[Sequence[str]]:
    yield [sys.executable, "-P", "-m", "acp_fastapi", "stdio", "--app-dir", str(REPO_ROOT), APP]


def uvicorn():
    return under_uvicorn(app)


@asynccontextmanager
async def hypercorn() -> AsyncIterator[str]:
    config = Config()
    config.bind = [f"127.0.0.1:{await free_port()}"]
    stopping = anyio.Event()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(partial(serve, app, config, shutdown_trigger=stopping.wait))
        await until_up(f"http://{config.bind[0]}/")
        yield f"http://{config.bind[0]}/acp"
        stopping.set()


MOUNTED = "a mounted application answers POST on its bare path with a redirect, and refuses the handshake there"

CELLS = [
    Cell(name="fastapi-stdio", transport="stdio", host=as_process, smoke=True),
    Cell(name="fastapi-uvicorn-http", transport="http", host=uvicorn),
    Cell(name="fastapi-uvicorn-websocket", transport="websocket", host=uvicorn),
    Cell(name="fastapi-hypercorn-http", transport="http", host=hypercorn),
    Cell(name="fastapi-hypercorn-http2", transport="http", host=hypercorn, http2=True),
    Cell(name="fastapi-hypercorn-websocket", transport="websocket", host=hypercorn),
    Cell(name="fastapi-mount-http", transport="http", host=uvicorn, impossible=MOUNTED),
    Cell(name="fastapi-mount-websocket", transport="websocket", host=uvicorn, impossible=MOUNTED),
]
