"""The conformance suite, over every way in which a FastAPI application serves an agent."""

import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from functools import partial

import anyio
from fastapi import FastAPI
from hypercorn.asyncio import serve
from hypercorn.config import Config

from acp_integration.assembly import AgentBuilder
from acp_integration.endpoint import AcpEndpoint
from acp_integration.testing.conformance import Cell
from acp_integration.testing.conformance.suite import *  # noqa: F403
from examples.agents import ProbeAgent
from examples.fastapi_app.main import app
from tests.conformance.cells import REPO_ROOT, free_port, under_uvicorn, until_up

APP = "examples.fastapi_app.main:app"


@asynccontextmanager
async def as_process() -> AsyncIterator[Sequence[str]]:
    yield [sys.executable, "-P", "-m", "acp_fastapi", "stdio", "--app-dir", str(REPO_ROOT), APP]


def uvicorn():
    return under_uvicorn(app)


def mounted():
    """The endpoint mounted where a router belongs."""
    outer = FastAPI()
    outer.mount("/acp", AcpEndpoint(AgentBuilder(ProbeAgent).build_factory()))
    return under_uvicorn(outer)


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
NOT_ON_A_BARE_PATH = dict.fromkeys(
    (
        "test_a_turn_streams_its_updates_in_order_before_its_answer",
        "test_two_sessions_of_a_connection_run_at_once_without_cross_talk",
        "test_a_cancel_ends_the_turn_as_cancelled_and_leaves_the_session_usable",
    ),
    MOUNTED,
)

CELLS = [
    Cell(name="fastapi-stdio", transport="stdio", host=as_process, smoke=True),
    Cell(name="fastapi-uvicorn-http", transport="http", host=uvicorn),
    Cell(name="fastapi-uvicorn-websocket", transport="websocket", host=uvicorn),
    Cell(name="fastapi-hypercorn-http", transport="http", host=hypercorn),
    Cell(name="fastapi-hypercorn-http2", transport="http", host=hypercorn, http2=True),
    Cell(name="fastapi-hypercorn-websocket", transport="websocket", host=hypercorn),
    Cell(name="fastapi-mount-http", transport="http", host=mounted, smoke=True, cannot=NOT_ON_A_BARE_PATH),
    Cell(name="fastapi-mount-websocket", transport="websocket", host=mounted, smoke=True, cannot=NOT_ON_A_BARE_PATH),
]
