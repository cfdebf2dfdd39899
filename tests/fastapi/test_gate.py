"""The gate: the app's own dependencies decide once, then the raw stream or socket is served."""

from typing import Annotated, Any

import anyio
import pytest
import websockets
from fastapi import APIRouter, BackgroundTasks, Depends, FastAPI, HTTPException, Request
from fastapi.responses import JSONResponse
from fastapi.security import HTTPBearer

from acp_fastapi.gate import Admission, GateRoute, is_guarded


class Behind:
    """Stands for the endpoint: records what reaches it, echoes bodies, streams until told, echoes sockets."""

    def __init__(self, log: list[str] | None = None) -> None:
        self.log = [] if log is None else log
        self.scopes: list[Any] = []
        self.finish = anyio.Event()

    async def __call__(self, scope, receive, send):
        self.scopes.append(scope)
        self.log.append(f"serve {scope['type']}")
        if scope["type"] == "websocket":
            await self.socket(receive, send)
            return
        message = await receive()
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-type", b"text/event-stream")]})
        await send({"type": "http.response.body", "body": b"<" + message["body"] + b">", "more_body": True})
        if scope["method"] == "GET":
            await self.finish.wait()
        await send({"type": "http.response.body", "body": b"", "more_body": False})

    async def socket(self, receive, send):
        assert (await receive())["type"] == "websocket.connect"
        await send({"type": "websocket.accept"})
        while (message := await receive())["type"] == "websocket.receive":
            await send({"type": "websocket.send", "text": message["text"].upper()})


def gate_router(behind: Behind, *, user: Any = None, dependencies: Any = ()) -> APIRouter:
    router = APIRouter(route_class=GateRoute, dependencies=list(dependencies))

    async def admit(request: Request, who: Annotated[Any, Depends(user or (lambda: None))]):
        app = request.scope["app"]
        return Admission(behind, {"who": who, "guarded": is_guarded(request.scope["route"], app.routes)})

    for path in ("/acp", "/acp/"):
        router.add_api_route(path, admit, methods=["GET", "POST", "DELETE"], include_in_schema=False)
    return router


def only_good(request: Request) -> str:
    token = request.headers.get("authorization")
    if token != "Bearer good":
        raise HTTPException(401, "no", headers={"WWW-Authenticate": "Bearer"})
    return token


def guarded_app(where: str, behind: Behind) -> FastAPI:
    guard = [Depends(only_good)]
    app = FastAPI(dependencies=guard if where == "app" else [])
    router = gate_router(behind, dependencies=guard if where == "router" else [])
    outer = APIRouter()
    outer.include_router(router)
    app.include_router(outer, prefix="/v1", dependencies=guard if where == "include" else [])
    return app


GOOD = {"authorization": "Bearer good"}


@pytest.mark.parametrize("slash", ["", "/"])
@pytest.mark.parametrize("credentials", [{}, {"authorization": "Bearer bad"}, GOOD], ids=["no", "bad", "good"])
@pytest.mark.parametrize("where", ["app", "router", "include"])
async def test_a_guard_stands_before_every_way_in(where, credentials, slash, serve, http):
    behind = Behind()
    behind.finish.set()
    address = await serve(guarded_app(where, behind))
    url = f"{address}/v1/acp{slash}"
    for method in ("POST", "GET", "DELETE"):
        answer = await http.request(method, f"http://{url}", headers=credentials)
        assert answer.status_code == (200 if credentials == GOOD else 401)
    if credentials == GOOD:
        async with websockets.connect(f"ws://{url}", additional_headers=credentials, proxy=None) as socket:
            await socket.send("hi")
            assert await socket.recv() == "HI"
        assert len(behind.scopes) == 4
        assert all(scope["guarded"] for scope in behind.scopes)
    else:
        with pytest.raises(websockets.InvalidStatus) as refused:
            await websockets.connect(f"ws://{url}", additional_headers=credentials, proxy=None)
        assert refused.value.response.status_code == 401
        assert refused.value.response.headers["www-authenticate"] == "Bearer"
        assert behind.scopes == []


async def test_other_methods_are_refused_by_the_framework(serve, http):
    app = FastAPI()
    app.include_router(gate_router(Behind()))
    address = await serve(app)
    answer = await http.put(f"http://{address}/acp")
    assert answer.status_code == 405
    assert set(answer.headers["allow"].split(", ")) == {"GET", "POST", "DELETE"}


async def test_security_classes_that_want_a_request_guard_the_handshake_too(serve):
    behind = Behind()
    app = FastAPI()
    app.include_router(gate_router(behind, dependencies=[Depends(HTTPBearer())]))
    address = await serve(app)
    with pytest.raises(websockets.InvalidStatus):
        await websockets.connect(f"ws://{address}/acp", proxy=None)
    async with websockets.connect(f"ws://{address}/acp", additional_headers=GOOD, proxy=None):
        pass
    assert len(behind.scopes) == 1


async def test_a_server_that_cannot_send_a_refusal_closes_the_handshake_with_1008():
    sent = []

    async def send(message):
        sent.append(message)

    async def receive():
        return {"type": "websocket.connect"}

    app = FastAPI()
    app.include_router(gate_router(Behind(), dependencies=[Depends(only_good)]))
    await app({"type": "websocket", "path": "/acp", "headers": [], "query_string": b""}, receive, send)
    assert sent == [{"type": "websocket.close", "code": 1008, "reason": "Unauthorized"}]


async def test_yield_dependencies_are_closed_before_the_stream_is_served(serve, http, bound):
    log: list[str] = []
    behind = Behind(log)

    async def asynchronous():
        log.append("open")
        yield "me"
        log.append("close")

    def blocking():
        log.append("open")
        yield
        log.append("close")

    app = FastAPI()
    app.include_router(gate_router(behind, user=asynchronous, dependencies=[Depends(blocking)]))
    address = await serve(app)
    with bound():
        async with http.stream("GET", f"http://{address}/acp") as stream:
            assert await anext(stream.aiter_raw()) == b"<>"
            assert log == ["open", "open", "close", "close", "serve http"]
            behind.finish.set()
    assert behind.scopes[0]["who"] == "me"


async def test_a_yield_dependency_that_refuses_at_its_end_keeps_the_request_out(serve, http):
    behind = Behind()

    async def late():
        yield
        raise HTTPException(409, "too late")

    app = FastAPI()
    app.include_router(gate_router(behind, dependencies=[Depends(late)]))
    address = await serve(app)
    assert (await http.post(f"http://{address}/acp")).status_code == 409
    assert behind.scopes == []


async def test_a_guard_that_fails_keeps_the_request_out(serve, http):
    behind = Behind()

    async def broken():
        raise ValueError("secret")

    app = FastAPI()
    app.include_router(gate_router(behind, dependencies=[Depends(broken)]))
    address = await serve(app)
    answer = await http.post(f"http://{address}/acp")
    assert answer.status_code == 500
    assert "secret" not in answer.text
    with pytest.raises(websockets.InvalidStatus):
        await websockets.connect(f"ws://{address}/acp", proxy=None)
    assert behind.scopes == []


async def test_the_apps_own_exception_handlers_write_the_refusal(serve, http):
    class NotAllowed(Exception):
        pass

    async def guard():
        raise NotAllowed

    app = FastAPI(exception_handlers={NotAllowed: lambda request, error: JSONResponse({"own": True}, 418)})
    app.include_router(gate_router(Behind(), dependencies=[Depends(guard)]))
    address = await serve(app)
    answer = await http.post(f"http://{address}/acp")
    assert (answer.status_code, answer.json()) == (418, {"own": True})
    with pytest.raises(websockets.InvalidStatus) as refused:
        await websockets.connect(f"ws://{address}/acp", proxy=None)
    assert (refused.value.response.status_code, refused.value.response.body) == (418, b'{"own":true}')


async def test_a_guard_may_read_the_body_and_the_endpoint_still_gets_it(serve, http):
    seen = []

    async def signature(request: Request):
        seen.append(await request.body())

    app = FastAPI()
    app.include_router(gate_router(Behind(), dependencies=[Depends(signature)]))
    address = await serve(app)
    assert (await http.post(f"http://{address}/acp", content=b"payload")).content == b"<payload>"
    async with websockets.connect(f"ws://{address}/acp", proxy=None) as socket:
        await socket.send("still here")
        assert await socket.recv() == "STILL HERE"
    assert seen == [b"payload", b""]


async def test_what_a_guard_writes_into_the_state_reaches_the_endpoint(serve, http):
    behind = Behind()

    async def guard(request: Request, background: BackgroundTasks):
        request.state.seen = request.url.scheme
        background.add_task(behind.log.append, "background")

    app = FastAPI()
    app.include_router(gate_router(behind, dependencies=[Depends(guard)]))
    address = await serve(app)
    await http.post(f"http://{address}/acp")
    async with websockets.connect(f"ws://{address}/acp", proxy=None):
        pass
    assert [scope["state"]["seen"] for scope in behind.scopes] == ["http", "http"]
    assert behind.log == ["background", "serve http", "background", "serve websocket"]


async def test_the_gate_is_hidden_from_the_schema_and_named_for_url_for():
    app = FastAPI()
    app.include_router(gate_router(Behind()), prefix="/x")
    assert app.openapi()["paths"] == {}
    assert app.url_path_for("admit") == "/x/acp"


async def test_without_dependencies_a_request_is_not_guarded(serve, http):
    behind = Behind()
    app = FastAPI()
    app.include_router(gate_router(behind))
    address = await serve(app)
    await http.post(f"http://{address}/acp")
    assert not behind.scopes[0]["guarded"]


async def test_one_open_inclusion_makes_a_gate_unguarded(serve, http):
    behind = Behind()
    app = FastAPI()
    router = gate_router(behind)
    app.include_router(router)
    app.include_router(router, prefix="/safe", dependencies=[Depends(only_good)])
    address = await serve(app)
    await http.post(f"http://{address}/acp", headers=GOOD)
    assert not behind.scopes[0]["guarded"]
