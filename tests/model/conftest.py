"""A client of frames for tests of the programming model: all that the agent sends is kept, and judged by the schema."""

import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import anyio
import pytest

from acp_integration.assembly import AgentBuilder
from acp_integration.caller import LOCAL
from acp_integration.transports.memory import memory_transport_pair
from tests.schema import WireLog

Frame = dict[str, Any]

EVERYTHING = {
    "fs": {"readTextFile": True, "writeTextFile": True},
    "terminal": True,
    "elicitation": {"form": {}, "url": {}},
    "session": {"configOptions": {"boolean": {}}, "notices": {}, "compaction": {}},
    "plan": {},
    "auth": {"terminal": True},
}


class WireClient:
    """Sends requests, answers those of the agent by a table, and keeps all frames in order."""

    def __init__(self, transport: Any) -> None:
        self.transport = transport
        self.log: list[Frame] = []
        self.answers: dict[str, Callable[[Frame], Any] | Any] = {}
        self._ids = 0
        self._changed = anyio.Event()
        self._judge = WireLog()
        self.objections: list[str] = []

    def write(self, **message: Any) -> None:
        if "method" in message and "id" in message:
            self._judge._open["client", message["id"]] = message["method"]
        self.transport.write(json.dumps({"jsonrpc": "2.0", **message}).encode())

    def start(self, method: str, /, **params: Any) -> int:
        self._ids += 1
        self.write(id=self._ids, method=method, params=params)
        return self._ids

    def notify(self, method: str, /, **params: Any) -> None:
        self.write(method=method, params=params)

    async def call(self, method: str, /, **params: Any) -> Any:
        """The result of a request, which must succeed."""
        answer = await self.answer(self.start(method, **params))
        assert "result" in answer, answer
        return answer["result"]

    async def error(self, method: str, /, **params: Any) -> Any:
        """The error of a request, which must fail."""
        answer = await self.answer(self.start(method, **params))
        assert "error" in answer, answer
        return answer["error"]

    async def answer(self, identifier: int) -> Frame:
        return await self.seen(lambda frame: "method" not in frame and frame.get("id") == identifier)

    async def asked(self, method: str) -> Frame:
        """The agent's first request of a method."""
        return await self.seen(lambda frame: frame.get("method") == method and "id" in frame)

    async def seen(self, matches: Callable[[Frame], bool]) -> Frame:
        with anyio.fail_after(10):
            while True:
                for frame in self.log:
                    if matches(frame):
                        return frame
                self._changed = anyio.Event()
                await self._changed.wait()

    async def initialize(self, **capabilities: Any) -> Any:
        return await self.call("initialize", protocolVersion=1, clientCapabilities=capabilities)

    async def new_session(self, cwd: str = "/somewhere", **params: Any) -> str:
        session: str = (await self.call("session/new", cwd=cwd, mcpServers=[], **params))["sessionId"]
        return session

    def start_prompt(self, session: str, text: str = "hello") -> int:
        return self.start("session/prompt", sessionId=session, prompt=[{"type": "text", "text": text}])

    async def prompt(self, session: str, text: str = "hello") -> Any:
        return (await self.answer(self.start_prompt(session, text)))["result"]

    async def ask(self, text: str = "hello", **capabilities: Any) -> Any:
        """Initialize, open a session, prompt: the answer's frame."""
        await self.initialize(**capabilities)
        return await self.answer(self.start_prompt(await self.new_session(), text))

    def updates(self, kind: str | None = None) -> list[Frame]:
        sent = [frame["params"]["update"] for frame in self.log if frame.get("method") == "session/update"]
        return [update for update in sent if kind in (None, update["sessionUpdate"])]

    @property
    def text(self) -> str:
        chunks = self.updates("agent_message_chunk")
        return "".join(chunk["content"].get("text", "") for chunk in chunks)

    @property
    def requests(self) -> list[str]:
        return [frame["method"] for frame in self.log if "method" in frame and "id" in frame]

    async def read(self) -> None:
        while frames := await self.transport.receive():
            for frame in map(json.loads, frames):
                self.log.append(frame)
                self._check(frame)
                self._respond(frame)
            self._changed.set()

    def _check(self, frame: Frame) -> None:
        try:
            self._judge.check(frame, "agent")
        except AssertionError as error:
            self.objections.append(str(error))

    def _respond(self, frame: Frame) -> None:
        if "method" not in frame or "id" not in frame or frame["method"] not in self.answers:
            return
        answer = self.answers[frame["method"]]
        result = answer(frame["params"]) if callable(answer) else answer
        if isinstance(result, Exception):
            self.write(id=frame["id"], error={"code": -32603, "message": str(result)})
        elif result is not Ellipsis:
            self.write(id=frame["id"], result=result)


@asynccontextmanager
async def serving(factory: Any, caller: Any = LOCAL) -> AsyncIterator[WireClient]:
    ours, agents = memory_transport_pair()
    client = WireClient(ours)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(factory(agents, caller).serve)
        await ours.open()
        tasks.start_soon(client.read)
        yield client
        await ours.aclose()
    assert not client.objections


@pytest.fixture
def serve() -> Callable[..., Any]:
    """`async with serve(Agent, **arguments_of_the_builder) as client` is one connection with an agent."""

    def serve(agent: Any, *arguments: Any, caller: Any = LOCAL, **options: Any) -> Any:
        return serving(AgentBuilder(agent, *arguments, **options).build_factory(), caller)

    return serve


@pytest.fixture
def connect_to() -> Callable[..., Any]:
    """`async with connect_to(factory) as client` is one more connection with an agent that was built."""
    return serving


@pytest.fixture
def everything() -> Frame:
    """The capabilities of a client that can do all."""
    return EVERYTHING


@pytest.fixture
def build() -> Callable[..., Any]:
    """Bind an agent as a build does; what is wrong with it rises here."""

    def build(agent: Any, **options: Any) -> Any:
        return AgentBuilder(agent, **options).build_factory()

    return build
