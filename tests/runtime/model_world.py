"""A small world for the model-based test: an agent that records what runs, and a client that acts at random."""

import asyncio
import json
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from typing import Any
from uuid import uuid4

import anyio

from acp_integration import AcpAgentSettings, PromptContext, acp_agent, on
from acp_integration.assembly import AgentBuilder
from acp_integration.transports.memory import memory_transport_pair
from acp_integration.turns import Call

SETTINGS = {"cancel-grace-period": "8ms", "drain-timeout": "5s", "abort-timeout": "60ms"}
Action = tuple[Any, ...]


@dataclass
class World:
    """What happened, seen from inside the agent."""

    gates: dict[str, asyncio.Event] = field(default_factory=lambda: defaultdict(asyncio.Event))
    running: dict[str, dict[str, Call]] = field(default_factory=lambda: defaultdict(dict))
    ran: list[str] = field(default_factory=list)
    controls: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))
    busy: Counter[str] = field(default_factory=Counter)
    faults: list[str] = field(default_factory=list)
    overlaps: int = 0
    released: bool = False

    async def gate(self, turn: str) -> None:
        """Wait until the client lets the turn go on."""
        if not self.released:
            await self.gates[turn].wait()

    def release(self) -> None:
        """Let every turn go on, also those that are still to come."""
        self.released = True
        for gate in self.gates.values():
            gate.set()

    def unanswered(self, session: str) -> bool:
        """Whether a turn runs that has no answer yet; a stubborn one is answered without its handler."""
        return any(not call.answered for call in self.running[session].values())

    def enter(self, session: str, turn: str, call: Call) -> None:
        self.ran.append(turn)
        self.running[session][turn] = call
        if sum(len(turns) for turns in self.running.values()) > 1:
            self.overlaps += 1

    def leave(self, session: str, turn: str) -> None:
        self.running[session].pop(turn, None)


def agent_of(world: World) -> Any:
    @acp_agent(name="model", version="1")
    class ModelAgent:
        @on.prompt
        async def prompt(self, turn: PromptContext) -> None:
            kind, name = turn.text.split(":")
            if turn.is_cancelled:
                world.faults.append("a handler began although its turn was cancelled")
            if world.unanswered(turn.session.id):
                world.faults.append("two turns of one session run at once")
            world.enter(turn.session.id, name, turn.call)
            try:
                await behave(kind, name, turn)
            finally:
                world.leave(turn.session.id, name)

        @on.new_session
        async def new(self, cwd: str) -> dict[str, Any]:
            return {"sessionId": str(uuid4())}

        @on.set_mode
        async def set_mode(self, session_id: str, mode_id: str) -> dict[str, Any]:
            await control(session_id, mode_id)
            return {}

        @on.close_session
        async def close(self, session_id: str) -> dict[str, Any]:
            if world.unanswered(session_id):
                world.faults.append("a session is closed under its running turn")
            await control(session_id, "close")
            return {}

    async def control(session: str, name: str) -> None:
        world.busy[session] += 1
        if world.busy[session] > 1:
            world.faults.append("two control requests of one session run at once")
        world.controls[session].append(name)
        try:
            if name.startswith("slow"):
                for _ in range(12):
                    await asyncio.sleep(0)
        finally:
            world.busy[session] -= 1

    async def behave(kind: str, name: str, turn: PromptContext) -> None:
        await turn.send_message(f"{name} begins")
        match kind:
            case "stream":
                for _ in range(70):
                    await turn.send_message(f"{name} goes on")
            case "wait":
                await world.gate(name)
            case "ask":
                await turn.ask_permission(name)
            case "fail":
                raise ValueError(name)
            case "clean":
                try:
                    await world.gate(name)
                finally:
                    await asyncio.sleep(0)
                    await turn.send_message(f"{name} cleans up")
            case "stubborn":
                await resist(name, turn)
        await turn.send_message(f"{name} ends")

    async def resist(name: str, turn: PromptContext) -> None:
        for _ in range(3):
            try:
                await world.gate(name)
                return
            except asyncio.CancelledError:
                continue

    return ModelAgent


@dataclass
class Sent:
    """A request that the client sent, and where in the order of all frames."""

    id: int
    method: str
    session: str
    name: str
    place: int
    kind: str = ""


class Client:
    """Acts on the agent's connection, and keeps its own account of it."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.end, agent_end = memory_transport_pair()
        settings = AcpAgentSettings.from_mapping({"acp.agent": SETTINGS})
        self.runtime = AgentBuilder(agent_of(world), settings).build(agent_end)
        self.log: list[dict[str, Any]] = []
        self.sent: dict[int, Sent] = {}
        self.cancels: dict[str, list[int]] = defaultdict(list)
        self.sessions: list[str] = []
        self.asked: list[int] = []
        self.dropped = False
        self.logged_at_end: int | None = None
        self.texts: set[str] = set()
        self.unanswered_at_end: set[int] = set()
        self.ending = ""
        self.phases: set[str] = set()
        self.place = 0

    def write(self, message: dict[str, Any]) -> None:
        self.place += 1
        self.end.write(json.dumps({"jsonrpc": "2.0", **message}).encode())

    def request(self, method: str, params: Any, session: str = "", name: str = "") -> int:
        identifier = len(self.sent) + 1
        self.sent[identifier] = Sent(identifier, method, session, name, self.place)
        self.write({"id": identifier, "method": method, "params": params})
        return identifier

    async def read(self) -> None:
        while frames := await self.end.receive():
            for frame in frames:
                message = json.loads(frame)
                self.log.append(message)
                if message.get("method") == "session/request_permission":
                    self.asked.append(message["id"])

    async def open(self, sessions: int) -> None:
        await self.end.open()
        self.request("initialize", {"protocolVersion": 1})
        for _ in range(sessions):
            self.request("session/new", {"cwd": "/x", "mcpServers": []})
        while len(self.log) < 1 + sessions:
            await asyncio.sleep(0)
        self.sessions = [message["result"]["sessionId"] for message in self.log[1:]]

    async def act(self, action: Action) -> None:
        name, *arguments = action
        await getattr(self, f"do_{name}")(*arguments)

    async def do_prompt(self, which: int, kind: str) -> None:
        session = self.sessions[which]
        name = f"t{len(self.sent) + 1}"
        content = [{"type": "text", "text": f"{kind}:{name}"}]
        sent = self.request("session/prompt", {"sessionId": session, "prompt": content}, session, name)
        self.sent[sent].kind = kind

    async def do_mode(self, which: int, speed: str) -> None:
        session = self.sessions[which]
        name = f"{speed}{len(self.sent) + 1}"
        self.request("session/set_mode", {"sessionId": session, "modeId": name}, session, name)

    async def do_close(self, which: int) -> None:
        session = self.sessions[which]
        self.cancels[session].append(self.place)
        self.request("session/close", {"sessionId": session}, session, "close")

    async def do_cancel(self, which: int) -> None:
        session = self.sessions[which]
        self.note_phase(session)
        self.cancels[session].append(self.place)
        self.write({"method": "session/cancel", "params": {"sessionId": session}})

    async def do_withdraw(self, back: int) -> None:
        if len(self.sent) > back:
            sent = self.sent[len(self.sent) - back]
            self.cancels[f"#{sent.id}"].append(self.place)
            self.write({"method": "$/cancel_request", "params": {"requestId": sent.id}})

    async def do_answer(self, choice: str) -> None:
        if self.asked and choice != "never":
            outcome = {"outcome": "selected", "optionId": "allow"} if choice == "yes" else {"outcome": "cancelled"}
            self.write({"id": self.asked.pop(0), "result": {"outcome": outcome}})

    async def do_stop(self) -> None:
        """Cancel a turn that runs, if one does."""
        for which, session in enumerate(self.sessions):
            if self.world.running[session]:
                await self.do_cancel(which)
                return

    async def do_pause(self) -> None:
        """Let a grace period pass."""
        await asyncio.sleep(0.01)

    async def do_release(self) -> None:
        for gate in list(self.world.gates.values()):
            gate.set()

    async def do_step(self, ticks: int) -> None:
        for _ in range(ticks):
            await asyncio.sleep(0)

    async def do_follow(self, which: int) -> None:
        """Send the next prompt in the very moment the answer is read."""
        session = self.sessions[which]
        open_turns = [sent.id for sent in self.sent.values() if sent.session == session and not self.answers(sent.id)]
        for _ in range(40):
            if not any(self.sent[one].method == "session/prompt" and not self.answers(one) for one in open_turns):
                break
            await asyncio.sleep(0)
        await self.do_prompt(which, "quick")

    def note_phase(self, session: str) -> None:
        turns = [sent for sent in self.sent.values() if sent.session == session and sent.method == "session/prompt"]
        if not turns:
            self.phases.add("before any turn")
        elif self.answers(turns[-1].id):
            self.phases.add("idle")
        elif turns[-1].name in self.world.ran:
            self.phases.add("running")
        else:
            self.phases.add("waiting")

    def answers(self, identifier: int) -> list[dict[str, Any]]:
        return [message for message in self.log if "method" not in message and message.get("id") == identifier]


async def live(actions: list[Action], ending: str) -> Client:
    """Let a client act on an agent, end the connection in one of three ways, and wait for the agent to end."""
    client = Client(World())
    try:
        async with asyncio.timeout(5):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(client.runtime.serve)
                tasks.start_soon(client.read)
                await client.open(3)
                for action in actions:
                    await client.act(action)
                for _ in range(2):
                    await client.do_pause()
                client.unanswered_at_end = {one for one in client.sent if not client.answers(one)}
                if ending != "stop":
                    client.logged_at_end = len(client.log)
                client.dropped = ending == "drop"
                client.ending = ending
                if ending == "half-close":
                    client.world.release()
                    client.end.end_input()
                elif ending == "drop":
                    await client.end.aclose()
                else:
                    await client.do_step(30)
                    client.logged_at_end = len(client.log)
                    client.runtime.stop()
    except TimeoutError:
        client.world.faults.append("the connection did not end")
    return client
