"""The agent of the runtime's tests: the prompt's text says what its turn does."""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import suppress
from typing import Any, Final

from acp_integration import (
    AcpSession,
    PromptContext,
    RequestError,
    SyncPromptContext,
    acp_agent,
    current_turn,
    on,
    publish,
)

started: list[str] = []
"""What began, in the order it began: read by the tests that run in the same process."""
UNSENDABLE: Final[dict[str, tuple[Any, ...]]] = {
    "code": ("none", "text"),
    "data": (-32010, "text", object()),
    "message": (-32010, object()),
    "text": (-32010, "a lone surrogate \ud800"),
}
"""Arguments of errors that cannot be sent."""


async def obey(turn: PromptContext, text: str) -> Any:
    word, _, rest = text.partition(":")
    started.append(text)
    match word:
        case "echo":
            await turn.send_message(rest)
        case "stream":
            for number in range(int(rest)):
                await turn.send_message(str(number))
        case "sleep":
            await asyncio.sleep(float(rest))
        case "wait":
            await turn.send_message("waiting")
            await asyncio.Event().wait()
        case "finally":
            await clean_up(turn)
        case "stubborn":
            await be_stubborn(turn)
        case "swallow":
            await swallow(turn, rest)
        case "fail":
            raise RuntimeError("a secret in the text")
        case "unsendable":
            raise RequestError(*UNSENDABLE[rest])
        case "refuse":
            await refuse(turn)
        case "exit":
            raise SystemExit(7)
        case "late":
            await turn.send_message("in time")
            asyncio.get_running_loop().call_later(0.05, lambda: asyncio.ensure_future(turn.send_message("too late")))
        case "child":
            await asyncio.gather(*(turn.send_message(f"child {number}") for number in range(20)))
        case "permission":
            outcome = await turn.ask_permission("Do it")
            await turn.send_message(f"permission:{outcome}")
        case "answer":
            return {"stopReason": "max_tokens", "_meta": {"kept": True}}
    return None


async def clean_up(turn: PromptContext) -> None:
    await turn.send_message("waiting")
    try:
        await asyncio.Event().wait()
    finally:
        await asyncio.sleep(0.01)
        await asyncio.sleep(0.01)
        await turn.send_message("cleaned up")


async def be_stubborn(turn: PromptContext) -> None:
    await turn.send_message("waiting")
    until = asyncio.get_running_loop().time() + 3
    while asyncio.get_running_loop().time() < until:
        try:
            await asyncio.sleep(3)
        except asyncio.CancelledError:
            started.append("cancelled once")
            if started.count("cancelled once") > 1:
                raise


async def refuse(turn: PromptContext) -> None:
    """Swallows every cancel, until the test is over."""
    await turn.send_message("waiting")
    while "test over" not in started:
        with suppress(asyncio.CancelledError):
            await asyncio.sleep(3600)


async def swallow(turn: PromptContext, rest: str) -> None:
    await turn.send_message("waiting")
    try:
        await asyncio.Event().wait()
    except asyncio.CancelledError:
        await asyncio.sleep(0.01)
        if rest == "raise":
            raise ValueError("after the cancel") from None


@acp_agent(name="rules", version="1")
class RuleAgent:
    @on.new_session
    async def new(self, cwd: str) -> dict[str, Any]:
        started.append(f"new {cwd}")
        if cwd == "/slow":
            await asyncio.sleep(0.2)
        return {"sessionId": f"session of {cwd} {len(started)}"}

    @on.set_mode
    async def set_mode(self, session_id: str, mode_id: str) -> dict[str, Any]:
        started.append(f"mode {mode_id}")
        if mode_id.startswith("slow"):
            await asyncio.sleep(float(mode_id.partition(":")[2] or 0.2))
        started.append(f"mode {mode_id} done")
        return {}

    @on.list_sessions
    async def list_sessions(self) -> dict[str, Any]:
        started.append("list")
        return {"sessions": []}

    @on.close_session
    async def close(self, session_id: str) -> dict[str, Any]:
        started.append("close")
        return {}

    @on.cancel
    async def cancel(self, session_id: str) -> None:
        started.append("cancel handler")

    @on.ext_notification("_note")
    async def note(self, params: dict[str, Any]) -> None:
        if params.get("slow"):
            await asyncio.sleep(0.1)
        started.append(f"note {params['text']}")

    @on.ext_request("_work")
    async def work(self, params: dict[str, Any]) -> dict[str, Any]:
        await asyncio.sleep(params.get("seconds", 0))
        return {"done": params}

    @on.prompt
    async def prompt(self, turn: PromptContext) -> Any:
        return await obey(turn, turn.text)


@acp_agent(name="sync rules", version="1")
class SyncAgent:
    @on.prompt
    def prompt(self, turn: SyncPromptContext) -> str | None:
        word, _, rest = turn.text.partition(":")
        match word:
            case "sleep":
                turn.send_message("sleeping")
                time.sleep(float(rest))
            case "poll":
                turn.send_message("polling")
                while True:
                    time.sleep(0.01)
                    turn.send_message("still here")
            case "permission":
                turn.send_message(f"permission:{turn.ask_permission('Do it')}")
            case "stream":
                for number in range(int(rest)):
                    turn.send_message(str(number))
            case _:
                return f"echo: {turn.text}"
        return None


@acp_agent(name="generator", version="1")
class GeneratorAgent:
    @on.prompt
    async def prompt(self, turn: PromptContext) -> AsyncIterator[str]:
        try:
            for number in range(int(turn.text)):
                yield str(number)
        finally:
            started.append("closed")


@acp_agent(name="cooperative", version="1")
class CooperativeAgent:
    @on.prompt(cancellation="cooperative")
    async def prompt(self, turn: PromptContext, session: AcpSession) -> str:
        await turn.send_message("waiting")
        await turn.wait_cancelled()
        await asyncio.sleep(0.01)
        return "ended by itself"


@acp_agent(name="asking", version="1")
class AskingAgent:
    """Asks the client for what the prompt names, and reports what came of it and what is still open."""

    @on.prompt
    async def prompt(self, turn: PromptContext) -> str:
        if turn.text == "open":
            return f"open: {turn.call.connection.pending}"
        try:
            outcome = await self._ask(turn)
        except Exception as error:
            await turn.send_message(f"raised {type(error).__name__}")
            raise
        await turn.send_message(f"got {outcome}")
        return ""

    async def _ask(self, turn: PromptContext) -> Any:
        if turn.text in ("form", "url"):
            return (await self._elicit(turn)).action
        if turn.text == "terminal":
            async with turn.terminal("sleep", ["9"]) as terminal:
                return await terminal.wait_for_exit()
        questions = {
            "permission": lambda: turn.request_permission({"toolCallId": "1"}, [YES]),
            "choice": lambda: turn.ask_choice("Which?", ["one", "other"]),
            "read": lambda: turn.read_text_file("/x"),
            "write": lambda: turn.write_text_file("/x", "y"),
            "extension": lambda: turn.ext_request("_ask", {}),
        }
        return await questions[turn.text]()

    async def _elicit(self, turn: PromptContext) -> Any:
        if turn.text == "form":
            return await turn.elicit_form("Who?", {"name": {"type": "string"}})
        return await turn.elicit_url("Log in", "https://example.test")


@acp_agent(name="sync asking", version="1")
class SyncAskingAgent:
    @on.prompt
    def prompt(self, turn: SyncPromptContext) -> str:
        if turn.text == "open":
            return f"open: {turn.session.id}"
        if turn.text == "permission":
            return f"got {turn.request_permission({'toolCallId': '1'}, [YES])}"
        turn.ext_request("_ask", {})
        return "got an answer"


@acp_agent(name="ambient", version="1")
class AmbientAgent:
    """Publishes from wherever code may run during a turn."""

    @on.prompt
    async def prompt(self, turn: PromptContext) -> str:
        await publish("from the handler")
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._child())
        await asyncio.to_thread(lambda: publish("from a thread"))
        assert current_turn() is turn
        return "the end"

    async def _child(self) -> None:
        await publish("from a child task")


YES = {"optionId": "y", "name": "Yes", "kind": "allow_once"}
