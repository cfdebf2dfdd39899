"""FastAPI's dependencies around a handler: found, kept open while it runs, closed however it ends."""

import asyncio
import threading
from contextvars import ContextVar
from inspect import Parameter, signature
from types import SimpleNamespace
from typing import Annotated, Any

import anyio
import anyio.lowlevel
import pytest
from fastapi import BackgroundTasks, Body, Cookie, Depends, FastAPI, Header, HTTPException, Query, Request, Security
from fastapi.security import HTTPBearer, SecurityScopes
from pydantic import BaseModel
from starlette.requests import HTTPConnection

from acp_fastapi.resolver import Resolver
from acp_integration.caller import LOCAL, Caller, HttpRequest
from acp_integration.errors import HandlerError, RequestError

mark: ContextVar[str] = ContextVar("mark", default="unset")


class Item(BaseModel):
    name: str


def parameters(handler: Any) -> list[Parameter]:
    return list(signature(handler).parameters.values())


def prepared(handler: Any, served: FastAPI | None = None, state: Any = None) -> Any:
    """Prepares a handler and gives what runs it for a caller."""
    run = Resolver(served or FastAPI(), state or {}).prepare(handler, parameters(handler))

    async def call(caller: Caller = LOCAL) -> Any:
        async def proceed(values):
            result = handler(**values)
            return await result if asyncio.iscoroutine(result) else result

        return await run(SimpleNamespace(peer=SimpleNamespace(caller=caller)), proceed)

    return call


def opened_with(**headers: str) -> Caller:
    raw = [(name.encode(), value.encode()) for name, value in headers.items()]
    scope = {"type": "http", "path": "/acp", "query_string": b"q=7", "headers": raw, "state": {"db": "shared"}}
    return Caller(http=HttpRequest("/acp", scope=scope))


def claims(annotation: Any, default: Any = Parameter.empty) -> bool:
    parameter = Parameter("it", Parameter.POSITIONAL_OR_KEYWORD, annotation=annotation, default=default)
    return Resolver(FastAPI(), {}).claims(parameter)


def get_db() -> str:
    return "db"


CLAIMED = [
    Annotated[str, Depends(get_db)],
    Annotated[str, Security(get_db)],
    Annotated[str, "doc", Header()],
    Annotated[str | None, Cookie()],
    Annotated[int, Query(gt=1)],
    Annotated[Item, Body()],
    Annotated[Request, "the request"],
    Request,
    HTTPConnection,
    HTTPConnection | None,
    BackgroundTasks,
    SecurityScopes,
]


@pytest.mark.parametrize("annotation", CLAIMED, ids=map(str, range(len(CLAIMED))))
def test_what_fastapi_knows_is_claimed(annotation):
    assert claims(annotation)


def test_a_default_that_is_a_dependency_is_claimed():
    assert claims(str, Depends(get_db))


@pytest.mark.parametrize(
    "annotation", [str, Item, Annotated[str, "doc"], Parameter.empty, list[str], int | None], ids=repr
)
def test_everything_else_is_left_to_the_protocol(annotation):
    assert not claims(annotation)


async def test_a_handler_gets_headers_query_state_and_its_app():
    served = FastAPI()

    async def handler(
        request: Request,
        token: Annotated[str, Header()],
        q: Annotated[int, Query()],
        missing: Annotated[str | None, Cookie()] = None,
    ):
        return token, q, missing, request.state.db, request.app is served, request.url.path

    assert await prepared(handler, served)(opened_with(token="t")) == ("t", 7, None, "shared", True, "/acp")


async def test_without_a_request_the_state_is_the_lifespans():
    async def handler(request: Request):
        return request.state.db, dict(request.headers), request.client

    assert await prepared(handler, state={"db": "shared"})() == ("shared", {}, None)


async def test_a_call_cannot_write_into_the_state_of_another():
    async def handler(request: Request):
        before = getattr(request.state, "mine", None)
        request.state.mine = 1
        return before

    call = prepared(handler, state={})
    assert (await call(), await call()) == (None, None)


async def test_sub_dependencies_are_shared_within_one_call_and_made_anew_for_the_next():
    made = []

    def source():
        made.append(1)
        return len(made)

    def left(value: Annotated[int, Depends(source)]):
        return value

    async def handler(one: Annotated[int, Depends(left)], two: Annotated[int, Depends(source)]):
        return one, two

    call = prepared(handler)
    assert (await call(), await call()) == ((1, 1), (2, 2))


async def test_overrides_count_at_once_also_when_the_mapping_is_replaced():
    served = FastAPI()

    async def handler(db: Annotated[str, Depends(get_db)]):
        return db

    call = prepared(handler, served)
    assert await call() == "db"
    served.dependency_overrides[get_db] = lambda: "other"
    assert await call() == "other"
    served.dependency_overrides = {}
    assert await call() == "db"


async def test_context_variables_of_a_dependency_are_seen_by_the_handler_and_stay_in_its_task():
    async def sets():
        mark.set("by dependency")

    async def handler(_: Annotated[None, Depends(sets)]):
        return mark.get()

    call = prepared(handler)
    seen = []

    async def turn():
        seen.append(await call())

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(turn)
    assert seen == ["by dependency"]
    assert mark.get() == "unset"


async def test_sync_dependencies_run_on_a_thread():
    def here():
        return threading.get_ident()

    async def handler(thread: Annotated[int, Depends(here)]):
        return thread

    assert await prepared(handler)() != threading.get_ident()


class Ends:
    """Yield dependencies that record how they ended."""

    def __init__(self) -> None:
        self.log: list[str] = []

    async def asynchronous(self):
        try:
            yield self.log
        except Exception as error:
            self.log.append(f"async saw {type(error).__name__}")
            raise
        finally:
            await anyio.lowlevel.checkpoint()
            self.log.append("async closed")

    def blocking(self):
        try:
            yield self.log
        except Exception as error:
            self.log.append(f"sync saw {type(error).__name__}")
            raise
        finally:
            self.log.append("sync closed")

    def around(self, body: Any) -> Any:
        async def handler(
            one: Annotated[list, Depends(self.asynchronous)], two: Annotated[list, Depends(self.blocking)]
        ):
            return await body(one)

        return prepared(handler)


async def test_yield_dependencies_are_open_while_the_handler_runs_and_closed_behind_it():
    ends = Ends()

    async def body(log):
        log.append("handler")
        return "result"

    assert await ends.around(body)() == "result"
    assert ends.log == ["handler", "sync closed", "async closed"]


async def test_yield_dependencies_see_the_error_and_the_caller_gets_it():
    ends = Ends()
    error = ValueError("mine")

    async def body(log):
        raise error

    with pytest.raises(ValueError, match="mine") as raised:
        await ends.around(body)()
    assert raised.value is error
    assert ends.log == ["sync saw ValueError", "sync closed", "async saw ValueError", "async closed"]


@pytest.mark.parametrize("how", ["once", "for good"])
async def test_a_cancelled_handler_cleans_up_first_and_its_dependencies_close_whole(how, bound):
    ends = Ends()
    started = anyio.Event()
    scope = anyio.CancelScope()
    tasks: list[Any] = []

    async def body(log):
        try:
            started.set()
            await anyio.sleep_forever()
        finally:
            log.append("handler cleaned up")

    async def turn():
        tasks.append(asyncio.current_task())
        with scope:
            await ends.around(body)()

    with bound():
        async with anyio.create_task_group() as group:
            group.start_soon(turn)
            await started.wait()
            if how == "once":
                tasks[0].cancel()
            else:
                scope.cancel()
    assert ends.log == [
        "handler cleaned up", "sync saw TurnCancelled", "sync closed", "async saw TurnCancelled", "async closed"
    ]  # fmt: skip


async def test_a_cancel_while_a_dependency_opens_closes_those_that_were_open(bound):
    ends = Ends()
    opening = anyio.Event()
    task: list[Any] = []

    async def slow(before: Annotated[list, Depends(ends.asynchronous)]):
        opening.set()
        await anyio.sleep_forever()

    async def handler(_: Annotated[None, Depends(slow)]):
        raise AssertionError("must not run")

    async def turn():
        task.append(asyncio.current_task())
        await prepared(handler)()

    with bound():
        async with anyio.create_task_group() as group:
            group.start_soon(turn)
            await opening.wait()
            task[0].cancel()
    assert ends.log == ["async closed"]


async def test_clean_up_that_never_ends_is_left_behind(bound, monkeypatch):
    monkeypatch.setattr("acp_integration.lending.CLEANUP_LIMIT", 0.05)
    started = anyio.Event()

    async def stuck():
        try:
            yield
        finally:
            await anyio.sleep_forever()

    async def handler(_: Annotated[None, Depends(stuck)]):
        started.set()
        await anyio.sleep_forever()

    with bound():
        async with anyio.create_task_group() as group:
            group.start_soon(prepared(handler))
            await started.wait()
            group.cancel_scope.cancel()


async def test_an_error_while_closing_is_the_outcome():
    async def commits():
        yield
        raise LookupError("commit failed")

    async def handler(_: Annotated[None, Depends(commits)]):
        return "done"

    with pytest.raises(LookupError, match="commit failed"):
        await prepared(handler)()


@pytest.mark.parametrize(
    ("status", "code"), [(400, -32602), (401, -32000), (403, -32000), (404, -32002), (422, -32602), (429, -32603)]
)
async def test_a_refusal_becomes_the_protocol_error(status, code):
    async def refuses():
        raise HTTPException(status, "said so")

    async def handler(_: Annotated[None, Depends(refuses)]):
        raise AssertionError("must not run")

    with pytest.raises(RequestError) as raised:
        await prepared(handler)()
    assert (raised.value.code, raised.value.message, raised.value.data) == (code, "said so", {"status": status})


async def test_a_refusal_by_the_handler_itself_counts_too():
    async def handler(_: Annotated[str, Depends(get_db)]):
        raise HTTPException(404, "no such order")

    with pytest.raises(RequestError) as raised:
        await prepared(handler)()
    assert raised.value.code == -32002


async def test_a_server_error_keeps_its_text_to_itself():
    async def handler(_: Annotated[str, Depends(get_db)]):
        raise HTTPException(503, {"secret": 1})

    with pytest.raises(HTTPException):
        await prepared(handler)()


async def test_invalid_values_are_named_and_never_shown():
    async def handler(q: Annotated[int, Query(gt=100)], token: Annotated[int, Header()]):
        raise AssertionError("must not run")

    with pytest.raises(RequestError) as raised:
        await prepared(handler)(opened_with(token="secret"))
    assert raised.value.code == -32602
    assert raised.value.data == {
        "errors": [
            {"path": "query.q", "reason": "greater_than"},
            {"path": "header.token", "reason": "int_parsing"},
        ]
    }


async def test_security_schemes_read_the_connections_headers():
    bearer = HTTPBearer()

    async def handler(credentials: Annotated[Any, Security(bearer)]):
        return credentials.credentials

    call = prepared(handler)
    assert await call(opened_with(authorization="Bearer abc")) == "abc"
    with pytest.raises(RequestError) as raised:
        await call()
    assert raised.value.code == -32000


async def test_background_tasks_run_when_the_handler_has_ended():
    log = []

    async def handler(background: BackgroundTasks):
        background.add_task(log.append, "background")
        log.append("handler")

    await prepared(handler)()
    assert log == ["handler", "background"]


def reads_body(item: Annotated[Item, Body()]):
    return item


class Agent:
    def direct(self, item: Annotated[Item, Body()]): ...

    def nested(self, db: Annotated[str, Depends(get_db)], thing: Annotated[Item, Depends(reads_body)]): ...


@pytest.mark.parametrize(("method", "named"), [(Agent.direct, ["item"]), (Agent.nested, ["thing", "item"])])
def test_a_parameter_that_needs_a_body_is_refused_by_name(method, named):
    with pytest.raises(HandlerError) as raised:
        Resolver(FastAPI(), {}).prepare(method, parameters(method)[1:])
    assert raised.value.parameter == named[0]
    assert raised.value.method == method.__name__
    assert all(repr(name) in str(raised.value) for name in named)


def test_a_dependency_that_fastapi_cannot_read_is_refused_by_name():
    async def handler(thread: Annotated[int, Depends(threading.get_ident)]): ...

    with pytest.raises(HandlerError, match="cannot supply the parameter 'thread'"):
        prepared(handler)


async def test_what_a_constructor_asked_for_is_open_as_long_as_its_object(bound):
    ends = Ends()

    class Made:
        def __init__(self, log: Annotated[list, Depends(ends.asynchronous)]) -> None:
            self.log = log

    with bound():
        async with Resolver(FastAPI(), {}).constructed(Made, parameters(Made)) as made:
            made.log.append("in use")
    assert ends.log == ["in use", "async closed"]


async def test_a_constructor_that_fails_fails_the_start(bound):
    ends = Ends()

    def factory(log: Annotated[list, Depends(ends.asynchronous)]):
        raise LookupError("no table")

    with bound(), pytest.raises(LookupError, match="no table"):
        async with Resolver(FastAPI(), {}).constructed(factory, parameters(factory)):
            raise AssertionError("must not start")
    assert ends.log == ["async saw LookupError", "async closed"]
