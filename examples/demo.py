"""The main job, shown: the example agents over stdio, HTTP and WebSocket, driven by the project's own client.

Run by `make demo`. Starts the FastAPI example under uvicorn, and the Django example under its command and under
uvicorn; every update is printed as it arrives; one long turn is cancelled.
"""

import os
import socket
import sys
import tempfile
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
from anyio.abc import Process

from acp_integration import AcpClientSettings
from acp_integration.assembly import build_client
from acp_integration.client import ClientBuilder, ClientSession
from acp_integration.transports import select_client_transport
from acp_integration.types import Update

ROOT = Path(__file__).resolve().parent.parent
DJANGO = ROOT / "examples" / "django_project"
PYTHON = sys.executable
PROBE = ["thought please", "stream:5:8", "perm please", "hello"]
HELP_DESK = ["open The printer is on fire", "answer 1 Use water", "list"]


async def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        environ = {**os.environ, "DATABASE": str(Path(folder, "demo.sqlite3"))}
        await anyio.run_process([PYTHON, DJANGO / "manage.py", "migrate", "--verbosity", "0"], env=environ)
        await talk(
            "FastAPI, stdio",
            stdio([PYTHON, "-m", "acp_fastapi", "stdio", "examples.fastapi_app.main:app"], environ),
            PROBE,
        )
        await talk("Django, stdio", stdio([PYTHON, str(DJANGO / "manage.py"), "acp_stdio"], environ), HELP_DESK)
        await talk(
            "Django, stdio", stdio([PYTHON, "-m", "acp_django", "stdio", "--app-dir", str(DJANGO)], environ), ["list"]
        )
        async with server("examples.fastapi_app.main:app", ROOT, environ) as port:
            await talk(
                "FastAPI, HTTP",
                {"http": {"uri": f"http://127.0.0.1:{port}/acp"}},
                PROBE,
                cancelled="wait_for_cancel please",
            )
            await talk("FastAPI, WebSocket", {"websocket": {"uri": f"ws://127.0.0.1:{port}/acp"}}, PROBE)
    say("Done: every conversation ended as it should")


def stdio(command: Sequence[str], environ: Mapping[str, str]) -> Mapping[str, Any]:
    return {
        "stdio": {
            "command": command[0],
            "args": command[1:],
            "env": {"DATABASE": environ["DATABASE"]},
            "cwd": str(ROOT),
        }
    }


async def talk(title: str, transport: Mapping[str, Any], prompts: Sequence[str], cancelled: str | None = None) -> None:
    """Hold one conversation: a session, some prompts, and perhaps one that is cancelled."""
    say(f"\n=== {title}")
    settings = AcpClientSettings.from_mapping({"acp": {"client": {"transport": transport}}})
    selected = select_client_transport(settings)
    assert selected is not None
    async with build_client(selected, settings, [watch]) as client:
        agent = await client.initialize()
        say(f"    connected to {agent.agent_info.name if agent.agent_info else 'an agent'}")
        session = await client.new_session(ROOT)
        for prompt in prompts:
            say(f"you: {prompt}")
            result = await session.prompt(prompt)
            say(f"    [{result.stop_reason}]")
            assert result.stop_reason == "end_turn"
        if cancelled is not None:
            await cancel_turn(session, cancelled)


async def cancel_turn(session: ClientSession, prompt: str) -> None:
    say(f"you: {prompt}")
    turn = await session.start(prompt)
    with anyio.fail_after(10):
        await turn.next(0)
    say("you: stop")
    await session.cancel()
    result = await turn.result()
    say(f"    [{result.stop_reason}]")
    assert result.stop_reason == "cancelled"


def watch(builder: ClientBuilder) -> None:
    @builder.on_update
    async def show(update: Update) -> None:
        say(f"    {update.kind}: {(update.text or update.raw.get('title') or update.raw.get('status') or '').strip()}")

    @builder.on_permission
    async def allow(request: Any) -> str:
        say(f"    (allowed: {request.tool_call.title or 'what the agent asked'})")
        return str(request.options[0].option_id)


@asynccontextmanager
async def server(application: str, folder: Path, environ: Mapping[str, str]) -> AsyncIterator[int]:
    """The application under uvicorn, once it answers."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port: int = free.getsockname()[1]
    command = [PYTHON, "-m", "uvicorn", application, "--port", str(port), "--log-level", "warning"]
    async with await anyio.open_process(command, cwd=folder, env=environ, stdout=None, stderr=None) as process:
        await listening(port, process)
        yield port
        process.terminate()
        with anyio.fail_after(10):
            await process.wait()


async def listening(port: int, process: Process) -> None:
    with anyio.fail_after(60):
        while process.returncode is None:
            try:
                stream = await anyio.connect_tcp("127.0.0.1", port)
            except OSError:
                await anyio.sleep(0.05)
            else:
                await stream.aclose()
                return
    raise SystemExit("the server did not start")


def say(text: str) -> None:
    print(text, flush=True)


if __name__ == "__main__":
    anyio.run(main)
