"""Two agents without a framework: one that is of use, and one that shows every path to a client that tests itself."""

import asyncio
import os
from collections import Counter
from collections.abc import AsyncIterator
from pathlib import Path

from acp_integration import PromptContext, acp_agent, on
from acp_integration.types import Image


@acp_agent(name="tally", title="Tally", version="1.0.0")
class TallyAgent:
    """Counts the files below the session's directory by their ending: `/count` or `/count py`."""

    @on.prompt
    async def answer(self, turn: PromptContext) -> AsyncIterator[str]:
        wanted = turn.text.removeprefix("/count").strip().lstrip(".")
        async with turn.tool_call("Count files", kind="search"):
            counts = await asyncio.to_thread(_count_files, Path(turn.session.cwd))
        for ending, count in counts.most_common(10):
            if wanted in ("", ending):
                yield f"{count:6} .{ending}\n"
        yield f"{counts.total():6} files in all"


def _count_files(root: Path, limit: int = 100_000) -> Counter[str]:
    counts: Counter[str] = Counter()
    for folder, folders, files in os.walk(root):
        folders[:] = [name for name in folders if not name.startswith(".")]
        counts.update(Path(folder, name).suffix.lstrip(".") or "none" for name in files)
        if counts.total() > limit:
            break
    return counts


MODES = [
    {"id": "ask", "name": "Ask", "description": "Asks before it acts"},
    {"id": "code", "name": "Code", "description": "Acts by itself"},
]
OPTIONS = [
    {
        "id": "model",
        "name": "Model",
        "category": "model",
        "options": [{"value": "fast", "name": "Fast"}, {"value": "thorough", "name": "Thorough"}],
    },
    {
        "id": "voice",
        "name": "Voice",
        "options": [
            {"group": "plain", "name": "Plain", "options": [{"value": "terse", "name": "Terse"}]},
            {"group": "rich", "name": "Rich", "options": [{"value": "vivid", "name": "Vivid"}]},
        ],
    },
    {"id": "web", "name": "Search the web", "type": "boolean"},
]
PIXEL = Image(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==", "image/png"
)


@acp_agent(name="probe", title="Probe", version="1.0.0", modes=MODES, config_options=OPTIONS)
class ProbeAgent:
    """The first word of a prompt chooses what the agent does."""

    @on.prompt
    async def answer(self, turn: PromptContext) -> None:
        words = turn.text.replace("...", ":").split(":")[0].split()
        word = words[0] if words else ""
        behaviour = getattr(self, f"_{word}", self._echo)
        await behaviour(turn)

    async def _echo(self, turn: PromptContext) -> None:
        await turn.send_message(f"echo: {turn.text}")

    async def _stream(self, turn: PromptContext) -> None:
        _, count, *size = turn.text.split(":")
        chunk = "x" * int(size[0] if size else 20)
        for _ in range(int(count)):
            await turn.send_message(chunk)

    async def _wait_for_cancel(self, turn: PromptContext) -> None:
        await turn.send_message("waiting")
        await asyncio.Event().wait()

    async def _sleep(self, turn: PromptContext) -> None:
        await turn.send_message("sleeping")
        await asyncio.sleep(float(turn.text.split(":")[1]))
        await turn.send_message("awake")

    async def _perm(self, turn: PromptContext) -> None:
        async with turn.tool_call("Do what needs permission", kind="edit") as call:
            permission = await turn.request_permission(
                call,
                [
                    {"optionId": "y", "name": "Yes", "kind": "allow_once"},
                    {"optionId": "n", "name": "No", "kind": "reject_once"},
                ],
            )
        await turn.send_message(f"permission:{permission}")

    async def _finally(self, turn: PromptContext) -> None:
        await turn.send_message("waiting")
        try:
            await turn.wait_cancelled()
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0.05)
            await turn.send_message("cleaned up")

    async def _thought(self, turn: PromptContext) -> None:
        await turn.send_thought("thinking")
        await turn.send_message("thought")

    async def _fail(self, turn: PromptContext) -> None:
        raise RuntimeError("this text never reaches the client")

    async def _readfile(self, turn: PromptContext) -> None:
        await turn.send_message(await turn.read_text_file(_argument(turn)))

    async def _writefile(self, turn: PromptContext) -> None:
        await turn.write_text_file(_argument(turn), "written by the probe\n")
        await turn.send_message("written")

    async def _term(self, turn: PromptContext) -> None:
        program, *arguments = _argument(turn).split()
        async with (
            turn.tool_call(f"Run {program}", kind="execute") as call,
            turn.terminal(program, *arguments) as terminal,
        ):
            await call.add_terminal(terminal)
            status = await terminal.wait_for_exit()
            output = await terminal.output()
        await turn.send_message(f"exit {status.exit_code}: {output.text}")

    async def _plan(self, turn: PromptContext) -> None:
        for status in ("in_progress", "completed"):
            await turn.send_plan([{"content": "Look", "priority": "high", "status": status}, "Leap"])
        await turn.send_message("planned")

    async def _elicit(self, turn: PromptContext) -> None:
        if _argument(turn) == "form":
            answer = await turn.elicit_form("Who are you?", {"name": {"type": "string", "title": "Name"}})
            await turn.send_message(f"form:{answer.action}:{answer.content.get('name', '')}")
        else:
            answer = await turn.elicit_url("Sign in", "https://example.org/sign-in", elicitation_id="sign-in")
            await turn.send_message(f"url:{answer.action}")
            await turn.complete_elicitation("sign-in")

    async def _image(self, turn: PromptContext) -> None:
        await turn.send_message(PIXEL)

    async def _diff(self, turn: PromptContext) -> None:
        path = str(Path(turn.session.cwd, "probe.txt"))
        async with turn.tool_call("Edit probe.txt", kind="edit", locations=[path]) as call:
            await call.add_diff(path, "new\n", "old\n")
        await turn.send_message("edited")

    async def _usage(self, turn: PromptContext) -> None:
        await turn.send_usage(1_200, 200_000, cost=0.03)
        await turn.send_message("counted")

    async def _commands(self, turn: PromptContext) -> None:
        await turn.send_commands({"stream": "Sends many updates", "plan": "Makes a plan"})
        await turn.send_message("listed")

    async def _mode(self, turn: PromptContext) -> None:
        await turn.send_message(f"mode:{turn.mode} options:{sorted(turn.options.items())}")


def _argument(turn: PromptContext) -> str:
    return turn.text.partition(":")[2]
