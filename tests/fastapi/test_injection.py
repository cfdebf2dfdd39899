"""An agent's constructor and handlers ask for what endpoints ask for, on every transport."""

from collections.abc import Iterator
from contextlib import asynccontextmanager
from typing import Annotated, Any

import anyio
import anyio.lowlevel
import pytest
from fastapi import Depends, FastAPI, Header, HTTPException, Request, Security
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer
from fastapi.testclient import TestClient
from pydantic import BaseModel

from acp_fastapi import AcpFastAPI
from acp_integration import AcpSession, PromptContext, SyncPromptContext, acp_agent, on
from acp_integration.errors import HandlerError
from tests.fastapi.peers import OVER, Answered, over_http, over_socket

BOTH = pytest.mark.parametrize("over", list(OVER.values()), ids=list(OVER))

log: list[str] = []


@pytest.fixture(autouse=True)
def fresh_log() -> None:
    log.clear()


class Database:
    name = "real"


async def database():
    log.append("open")
    try:
        yield Database()
    except BaseException as error:
        log.append(f"saw {type(error).__name__}")
        raise
    finally:
        await anyio.lowlevel.checkpoint()
        log.append("close")


Db = Annotated[Database, Depends(database)]
bearer = HTTPBearer()


def served(agent: Any) -> FastAPI:
    app = FastAPI()
    app.include_router(AcpFastAPI(agent).router)
    return app


@acp_agent
class Injected:
    @on.new_session
    async def create(self, db: Db) -> dict[str, str]:
        log.append(f"new_session {db.name}")
        return {"sessionId": "the only one"}

    @on.prompt
    async def answer(self, turn: PromptContext, db: Db, agent: Annotated[str, Header(alias="user-agent")] = "none"):
        log.append("answer")
        if turn.text == "fail":
            raise LookupError("secret")
        if turn.text == "wait":
            await turn.send_message("waiting")
            await anyio.sleep_forever()
        yield f"{db.name} "
        yield "headers" if agent != "none" else "no headers"
        log.append("answered")


@BOTH
async def test_dependencies_live_for_one_handler_call(over, serve):
    address = await serve(served(Injected))
    async with over(f"{address}/acp") as peer:
        assert await peer.say("hi") == "real headers"
    assert log == ["open", "new_session real", "close", "open", "answer", "answered", "close"]


@BOTH
async def test_dependencies_see_an_error_and_the_client_does_not(over, serve):
    address = await serve(served(Injected))
    async with over(f"{address}/acp") as peer:
        with pytest.raises(Answered, match="Internal error") as raised:
            await peer.say("fail")
    assert raised.value.code == -32603
    assert "secret" not in str(raised.value.data)
    assert log[3:] == ["open", "answer", "saw LookupError", "close"]


@BOTH
async def test_a_cancel_closes_dependencies_whole(over, serve):
    address = await serve(served(Injected))
    results = []
    async with over(f"{address}/acp") as peer, anyio.create_task_group() as tasks:
        session = await peer.open_session()

        async def turn():
            results.append(await peer.prompt("wait", session))

        tasks.start_soon(turn)
        await peer.until_updates(1)
        await peer.write({"jsonrpc": "2.0", "method": "session/cancel", "params": {"sessionId": session}})
    assert results == [{"stopReason": "cancelled"}]
    assert log[3:] == ["open", "answer", "saw TurnCancelled", "close"]


async def test_overrides_of_the_application_count(serve):
    class Fake:
        name = "fake"

    app = served(Injected)
    app.dependency_overrides[database] = Fake
    address = await serve(app)
    async with over_socket(f"{address}/acp") as peer:
        assert await peer.say("hi") == "fake headers"


@BOTH
async def test_sync_handlers_and_sync_generators_have_dependencies_too(over, serve):
    def connection() -> Iterator[str]:
        log.append("open")
        yield "sync"
        log.append("close")

    @acp_agent
    class Sync:
        @on.prompt
        def answer(self, turn: SyncPromptContext, db: Annotated[str, Depends(connection)]):
            turn.send_message("direct ")
            yield db

    address = await serve(served(Sync))
    async with over(f"{address}/acp") as peer:
        assert await peer.say("hi") == "direct sync"
    assert log == ["open", "close"]


async def test_an_agent_that_is_a_function_has_dependencies(serve):
    @acp_agent
    async def answer(turn: PromptContext, db: Db) -> str:
        return f"{db.name}: {turn.text}"

    address = await serve(served(answer))
    async with over_socket(f"{address}/acp") as peer:
        assert await peer.say("hi") == "real: hi"


async def test_a_security_scheme_reads_the_credentials_of_the_connection(serve):
    @acp_agent
    class Secured:
        @on.prompt
        async def answer(
            self, turn: PromptContext, given: Annotated[HTTPAuthorizationCredentials, Security(bearer)]
        ) -> str:
            return given.credentials

    address = await serve(served(Secured))
    async with over_http(f"{address}/acp", Authorization="Bearer abc") as peer:
        assert await peer.say("hi") == "abc"
    async with over_socket(f"{address}/acp") as peer:
        with pytest.raises(Answered) as raised:
            await peer.say("hi")
    assert raised.value.code == -32000


@pytest.mark.parametrize(("status", "code"), [(401, -32000), (404, -32002), (422, -32602)])
async def test_an_http_error_is_answered_as_the_protocol_says_it(status, code, serve):
    @acp_agent
    class Refusing:
        @on.prompt
        async def answer(self, turn: PromptContext, request: Request):
            raise HTTPException(status, "not today")

    address = await serve(served(Refusing))
    async with over_socket(f"{address}/acp") as peer:
        with pytest.raises(Answered, match="not today") as raised:
            await peer.say("hi")
    assert raised.value.code == code


async def test_a_constructor_has_dependencies_of_the_application(serve):
    @acp_agent
    class Constructed:
        def __init__(self, db: Db) -> None:
            self.db = db

        @on.prompt
        async def answer(self, turn: PromptContext, session: AcpSession) -> str:
            return self.db.name

    app = served(Constructed)
    with TestClient(app):
        assert log == ["open"]
    assert log == ["open", "close"]
    address = await serve(app)
    async with over_socket(f"{address}/acp") as peer:
        assert await peer.say("hi") + await peer.say("again") == "realreal"
    assert log == ["open", "close", "open"]


class Item(BaseModel):
    name: str


def reads_a_body(item: Item) -> Item:
    return item


def test_a_parameter_from_a_body_is_refused_when_the_app_starts():
    @acp_agent
    class Wants:
        @on.prompt
        async def answer(self, turn: PromptContext, item: Annotated[Item, Depends(reads_a_body)]): ...

    with pytest.raises(HandlerError, match="the parameter 'item' from a request body"), TestClient(served(Wants)):
        pass


async def test_the_state_of_the_lifespan_reaches_handlers(serve):
    @asynccontextmanager
    async def lifespan(app: FastAPI):
        yield {"pool": "shared"}

    @acp_agent
    class Stateful:
        @on.prompt
        async def answer(self, turn: PromptContext, request: Request) -> str:
            return f"{request.state.pool} {request.app.title}"

    app = FastAPI(lifespan=lifespan, title="mine")
    app.include_router(AcpFastAPI(Stateful).router)
    address = await serve(app)
    async with over_socket(f"{address}/acp") as peer:
        assert await peer.say("hi") == "shared mine"
