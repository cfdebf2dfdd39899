"""An application includes the router: the agent is served, and lives as long as the application."""

import logging
from contextlib import asynccontextmanager
from typing import Any

import anyio
import pytest
import websockets
from fastapi import APIRouter, FastAPI, HTTPException, Request
from fastapi.testclient import TestClient

from acp_fastapi import AcpFastAPI
from acp_integration import AcpAgentSettings, PromptContext, acp_agent, on
from acp_integration.caller import principal_of
from acp_integration.errors import ConfigurationError, DiscoveryError
from examples.agents import ProbeAgent
from tests.fastapi.peers import OVER, over_http, over_socket

BOTH = pytest.mark.parametrize("over", list(OVER.values()), ids=list(OVER))


def settings(**values: Any) -> AcpAgentSettings:
    return AcpAgentSettings.from_mapping(values, prefix="")


def app_with(agents: AcpFastAPI, **options: Any) -> FastAPI:
    app = FastAPI()
    app.include_router(agents.router, **options)
    return app


@BOTH
@pytest.mark.parametrize("slash", ["", "/"])
async def test_an_agent_is_served_with_and_without_a_slash(over, slash, serve):
    address = await serve(app_with(AcpFastAPI(ProbeAgent)))
    async with over(f"{address}/acp{slash}") as peer:
        assert await peer.say("stream:50:1") == "x" * 50


@BOTH
async def test_a_long_turn_is_cancelled(over, serve):
    address = await serve(app_with(AcpFastAPI(ProbeAgent)))
    async with over(f"{address}/acp") as peer, anyio.create_task_group() as tasks:
        session = await peer.open_session()
        results = []

        async def turn():
            results.append(await peer.prompt("wait_for_cancel", session))

        tasks.start_soon(turn)
        await peer.until_updates(1)
        await peer.write({"jsonrpc": "2.0", "method": "session/cancel", "params": {"sessionId": session}})
    assert results == [{"stopReason": "cancelled"}]


@BOTH
async def test_prefixes_routers_and_root_paths_are_the_applications_business(over, serve):
    app = FastAPI()
    outer = APIRouter(prefix="/api")
    outer.include_router(AcpFastAPI(ProbeAgent).router, prefix="/v1")
    app.include_router(outer)
    address = await serve(app, root_path="/behind/a/proxy")
    async with over(f"{address}/api/v1/acp") as peer:
        assert await peer.say("hi") == "echo: hi"


@pytest.mark.parametrize("given", [{"path": "/agent/"}, {"settings": settings(transport={"http": {"path": "/agent"}})}])
async def test_the_path_is_an_argument_or_a_setting(given, serve):
    address = await serve(app_with(AcpFastAPI(ProbeAgent, **given)))
    async with over_socket(f"{address}/agent") as peer:
        assert await peer.say("hi") == "echo: hi"


async def test_routes_before_and_behind_it_are_untouched(serve, http):
    app = FastAPI()

    @app.get("/before")
    async def before() -> str:
        return "before"

    app.include_router(AcpFastAPI(ProbeAgent).router)

    @app.get("/{rest:path}")
    async def behind(rest: str) -> str:
        return rest

    address = await serve(app)
    assert (await http.get(f"http://{address}/before")).json() == "before"
    assert (await http.get(f"http://{address}/other")).json() == "other"
    async with over_socket(f"{address}/acp") as peer:
        assert await peer.say("hi") == "echo: hi"


def test_it_stands_in_no_schema():
    assert app_with(AcpFastAPI(ProbeAgent)).openapi()["paths"] == {}


async def test_several_agents_in_one_app_are_several(serve):
    @acp_agent(name="other")
    class Other:
        @on.prompt
        async def answer(self, turn: PromptContext):
            return "other"

    app = FastAPI()
    app.include_router(AcpFastAPI(ProbeAgent).router)
    app.include_router(AcpFastAPI(Other, path="/other").router)
    address = await serve(app)
    async with over_socket(f"{address}/acp") as probe, over_http(f"{address}/other") as other:
        assert await probe.say("hi") == "echo: hi"
        assert await other.say("hi") == "other"


async def test_one_object_serves_several_apps(serve):
    agents = AcpFastAPI(ProbeAgent)
    for app in (app_with(agents), app_with(agents)):
        address = await serve(app)
        async with over_socket(f"{address}/acp") as peer:
            assert await peer.say("hi") == "echo: hi"


async def test_disabled_creates_nothing(serve, http):
    made = []

    @acp_agent
    class Counted:
        def __init__(self) -> None:
            made.append(1)

        @on.prompt
        async def answer(self, turn: PromptContext): ...

    address = await serve(app_with(AcpFastAPI(Counted, settings=settings(enabled=False))))
    assert (await http.post(f"http://{address}/acp", json={})).status_code == 404
    assert made == []


async def test_a_web_server_cannot_serve_stdio():
    app = app_with(AcpFastAPI(ProbeAgent, settings=settings(transport={"type": "stdio"})))
    contradiction = r"acp\.agent\.transport\.type=stdio, but this process was started to serve HTTP"
    with pytest.raises(ConfigurationError, match=contradiction), TestClient(app):
        pass


async def test_settings_come_from_the_environment(monkeypatch, serve):
    monkeypatch.setenv("ACP_AGENT_TRANSPORT_HTTP_PATH", "/from-environment")
    address = await serve(app_with(AcpFastAPI(ProbeAgent)))
    async with over_socket(f"{address}/from-environment") as peer:
        assert await peer.say("hi") == "echo: hi"


async def test_an_agent_is_discovered(serve):
    with pytest.raises(DiscoveryError, match=r"Found 2 @acp_agent classes"):
        _ = AcpFastAPI(discover=["examples.agents"]).router
    address = await serve(app_with(AcpFastAPI(discover=["tests.fastapi.one_agent"])))
    async with over_socket(f"{address}/acp") as peer:
        assert await peer.say("hi") == "the one"


def test_what_is_no_agent_is_refused_when_the_router_is_made():
    with pytest.raises(DiscoveryError, match="not marked with @acp_agent"):
        _ = AcpFastAPI(object).router


async def test_the_agent_lives_inside_the_applications_lifespan(serve):
    log = []

    @asynccontextmanager
    async def lifespan(app: FastAPI):
        log.append("app up")
        yield {"db": "shared"}
        log.append("app down")

    @acp_agent
    class Agent:
        def __init__(self) -> None:
            log.append("agent up")

        @on.prompt
        async def answer(self, turn: PromptContext):
            return turn.http.scope["state"]["db"]

    app = FastAPI(lifespan=lifespan)
    app.include_router(AcpFastAPI(Agent).router)
    with TestClient(app):
        assert log == ["app up", "agent up"]
    with TestClient(app):
        pass
    assert log == ["app up", "agent up", "app down"] * 2
    address = await serve(app)
    async with over_socket(f"{address}/acp") as peer:
        assert await peer.say("hi") == "shared"


async def test_startup_handlers_of_the_application_still_run(serve):
    ready = []
    app = FastAPI()
    app.router.on_startup.append(lambda: ready.append("up"))
    app.include_router(AcpFastAPI(ProbeAgent).router)
    await serve(app)
    assert ready == ["up"]


@BOTH
async def test_in_a_mounted_application_it_starts_with_the_first_request(over, serve, caplog):
    inner = app_with(AcpFastAPI(ProbeAgent))
    middle, outer = FastAPI(), FastAPI()
    middle.mount("/inner", inner)
    outer.mount("/middle", middle)
    address = await serve(outer)
    with caplog.at_level(logging.WARNING):
        for _ in range(2):
            async with over(f"{address}/middle/inner/acp") as peer:
                assert await peer.say("hi") == "echo: hi"
    assert [record.message for record in caplog.records if "lifespan" in record.message] != []


async def test_it_works_without_any_lifespan(serve):
    address = await serve(app_with(AcpFastAPI(ProbeAgent)), lifespan="off")
    async with over_socket(f"{address}/acp") as peer:
        assert await peer.say("hi") == "echo: hi"


async def test_what_keeps_a_mounted_agent_from_starting_is_an_error_each_time(serve, http):
    @acp_agent
    class Broken:
        def __init__(self) -> None:
            raise LookupError("no database")

        @on.prompt
        async def answer(self, turn: PromptContext): ...

    address = await serve(app_with(AcpFastAPI(Broken)), lifespan="off")
    for _ in range(2):
        assert (await http.post(f"http://{address}/acp", json={})).status_code == 500
    with pytest.raises(websockets.InvalidStatus):
        await websockets.connect(f"ws://{address}/acp", proxy=None)


class User:
    """A user object that is made anew for every request, as an ORM makes it."""

    def __init__(self, name: str) -> None:
        self.id = name


async def current_user(request: Request) -> User:
    if (name := request.headers.get("x-user")) is None:
        raise HTTPException(401)
    return User(name)


@acp_agent
class WhoAmI:
    @on.prompt
    async def answer(self, turn: PromptContext):
        return turn.user.id if isinstance(turn.user, User) else repr(turn.user)


@BOTH
async def test_the_user_of_a_request_reaches_the_turn(over, serve):
    address = await serve(app_with(AcpFastAPI(WhoAmI, user=current_user)))
    async with over(f"{address}/acp", **{"x-user": "ada"}) as peer:
        assert await peer.say("who?") == "ada"


async def test_a_connection_is_unknown_to_every_other_user(serve):
    address = await serve(app_with(AcpFastAPI(WhoAmI, user=current_user)))
    async with over_http(f"{address}/acp", **{"x-user": "ada"}) as peer:
        session = await peer.open_session()
        for headers in ({"x-user": "bob"}, {"x-user": "ada"}):
            mine = headers["x-user"] == "ada"
            stolen = peer.headers | headers
            message = {"jsonrpc": "2.0", "method": "session/cancel", "params": {"sessionId": session}}
            with_session = stolen | {"Acp-Session-Id": session}
            answers = [
                await peer.http.post(peer.url, json=message, headers=with_session),
                await peer.http.delete(peer.url, headers=stolen),
            ]
            assert [answer.status_code for answer in answers] == ([202, 202] if mine else [404, 404])
            if not mine:
                stream = await peer.http.get(peer.url, headers=stolen | {"Accept": "text/event-stream"})
                assert stream.status_code == 404


@pytest.mark.parametrize(
    ("user", "principal", "expected"),
    [
        ("ada", None, "ada"),
        (7, None, "7"),
        (User("u1"), None, "u1"),
        ({"sub": "x"}, lambda user: user["sub"], "x"),
        (None, None, None),
    ],
    ids=["string", "integer", "id", "argument", "nobody"],
)
def test_the_principal_is_the_user_or_its_id_or_what_the_application_says(user, principal, expected):
    assert principal_of(user, principal) == expected


@pytest.mark.parametrize("user", [{"sub": "x"}, True, object()], ids=["mapping", "flag", "object"])
def test_a_user_that_is_no_principal_names_the_argument(user):
    with pytest.raises(ConfigurationError, match=r"give principal=\.\.\."):
        principal_of(user)
