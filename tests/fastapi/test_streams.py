"""Open streams: nothing of a request is held while one is open, and middleware in front changes nothing."""

import logging
import threading
from typing import Any

import anyio
import pytest
from fastapi import Depends, FastAPI
from starlette.middleware.base import BaseHTTPMiddleware
from starlette.middleware.cors import CORSMiddleware
from starlette.middleware.gzip import GZipMiddleware
from starlette.middleware.sessions import SessionMiddleware

from acp_fastapi import AcpFastAPI
from acp_integration import PromptContext, acp_agent, on
from examples.agents import ProbeAgent
from tests.fastapi.peers import over_http, over_socket


async def test_idle_streams_hold_no_dependency_and_no_thread(serve):
    open_now: list[str] = []

    async def asynchronous():
        open_now.append("async")
        yield
        open_now.remove("async")

    def blocking():
        open_now.append("sync")
        yield
        open_now.remove("sync")

    app = FastAPI(dependencies=[Depends(asynchronous)])
    app.include_router(AcpFastAPI(ProbeAgent).router, dependencies=[Depends(blocking)])
    address = await serve(app)
    async with over_http(f"{address}/acp") as peer:
        threads = threading.active_count()
        for _ in range(20):
            await peer.open_session()
        assert open_now == []
        # Worker threads that served the dependencies stay for a while, idle; none is held by a stream.
        assert threading.active_count() <= threads + 1


def complaints(caplog: Any) -> list[str]:
    """What was logged as a problem; that the machine was slow is none, and is all that asyncio says here."""
    records = (record for record in caplog.records if record.levelno >= logging.WARNING and record.name != "asyncio")
    return [record.getMessage() for record in records]


class PassThrough(BaseHTTPMiddleware):
    async def dispatch(self, request: Any, call_next: Any) -> Any:
        response = await call_next(request)
        response.headers["x-passed"] = "yes"
        return response


def behind_middleware(agent: Any) -> FastAPI:
    app = FastAPI()
    app.add_middleware(PassThrough)
    app.add_middleware(GZipMiddleware, minimum_size=1)
    app.add_middleware(SessionMiddleware, secret_key="for tests")
    app.add_middleware(CORSMiddleware, allow_origins=["http://localhost:3000"], expose_headers=["Acp-Connection-Id"])
    app.include_router(AcpFastAPI(agent).router)
    return app


async def test_events_arrive_one_by_one_through_middleware(serve, caplog):
    go_on = anyio.Event()

    @acp_agent
    class Paused:
        @on.prompt
        async def answer(self, turn: PromptContext):
            await turn.send_message("first")
            await go_on.wait()
            await turn.send_message("second")

    address = await serve(behind_middleware(Paused))
    async with over_http(f"{address}/acp", Origin="http://localhost:3000") as peer, anyio.create_task_group() as tasks:
        tasks.start_soon(peer.prompt, "go")
        await peer.until_updates(1)
        go_on.set()
        await peer.until_updates(2)
    async with over_socket(f"{address}/acp") as peer:
        assert await peer.say("again") == "firstsecond"
    assert complaints(caplog) == []


async def test_a_reader_that_leaves_a_stream_leaves_no_trace(serve, http, caplog, bound):
    address = await serve(behind_middleware(ProbeAgent))
    async with over_http(f"{address}/acp", Origin="http://localhost:3000") as peer:
        headers = peer.headers | {"Accept": "text/event-stream"}
        with bound(20):
            for _ in range(5):
                async with http.stream("GET", peer.url, headers=headers) as stream:
                    assert stream.headers["x-passed"] == "yes"
                    assert stream.headers["access-control-expose-headers"] == "Acp-Connection-Id"
                    assert "content-encoding" not in stream.headers
                    await anext(stream.aiter_raw())
        await peer.tasks.start(peer.listen)
        assert await peer.say("still there") == "echo: still there"
    assert complaints(caplog) == []


async def test_a_browser_may_ask_before_it_sends(serve, http):
    address = await serve(behind_middleware(ProbeAgent))
    headers = {"Origin": "http://localhost:3000", "Access-Control-Request-Method": "GET"}
    answer = await http.options(f"http://{address}/acp", headers=headers)
    assert answer.status_code == 200
    refused = await http.post(f"http://{address}/acp", content=b"[]", headers={"Origin": "http://localhost:3000"})
    assert refused.status_code == 415
    assert refused.headers["access-control-allow-origin"] == "http://localhost:3000"


@pytest.mark.parametrize("over", [over_http, over_socket])
async def test_a_client_that_is_gone_leaves_no_turn_running(over, serve, bound):
    ended = anyio.Event()

    @acp_agent
    class Endless:
        @on.prompt
        async def answer(self, turn: PromptContext):
            try:
                await turn.send_message("started")
                await anyio.sleep_forever()
            finally:
                ended.set()

    app = FastAPI()
    app.include_router(AcpFastAPI(Endless).router)
    address = await serve(app)
    async with over(f"{address}/acp") as peer, anyio.create_task_group() as tasks:
        tasks.start_soon(peer.prompt, "go")
        await peer.until_updates(1)
        tasks.cancel_scope.cancel()
    with bound():
        await ended.wait()
