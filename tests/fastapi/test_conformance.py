"""The conformance suite, over every way in which a FastAPI application serves an agent."""

import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

from acp_integration.testing.conformance import Cell
from acp_integration.testing.conformance.suite import *  # noqa: F403
from examples.fastapi_app.main import app
from tests.conformance.cells import REPO_ROOT, as_server, under_uvicorn

APP = "examples.fastapi_app.main:app"


@asynccontextmanager
async def as_process() -> AsyncIterator[Sequence[str]]:
    yield [sys.executable, "-P", "-m", "acp_fastapi", "stdio", "--app-dir", str(REPO_ROOT), APP]


def uvicorn():
    return under_uvicorn(app)


hypercorn = as_server("hypercorn", "--bind", "127.0.0.1:{port}", APP)
MOUNTED = "a mounted application answers POST on its bare path with a redirect, and refuses the handshake there"

CELLS = [
    Cell(name="fastapi-stdio", transport="stdio", host=as_process),
    Cell(name="fastapi-uvicorn-http", transport="http", host=uvicorn),
    Cell(name="fastapi-uvicorn-websocket", transport="websocket", host=uvicorn),
    Cell(name="fastapi-hypercorn-http", transport="http", host=hypercorn),
    Cell(name="fastapi-hypercorn-http2", transport="http", host=hypercorn, http2=True),
    Cell(name="fastapi-hypercorn-websocket", transport="websocket", host=hypercorn),
    Cell(name="fastapi-mount-http", transport="http", host=uvicorn, impossible=MOUNTED),
    Cell(name="fastapi-mount-websocket", transport="websocket", host=uvicorn, impossible=MOUNTED),
]
