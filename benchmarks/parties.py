"""Who is measured, and how each is started: alike, with compiled bytecode kept and none of our settings set."""

import os
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from benchmarks.channels import Channel, HttpChannel, StdioChannel, WebSocketChannel
from benchmarks.driver import Driver
from benchmarks.processes import ROOT, Process, free_port

PEERS = ROOT / ".peers"
OURS, PYTHON, NPM = "ours", "Python SDK", "npm SDK"


def environ(**more: str) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("ACP_")}
    # Without bytecode every start compiles everything, and that is what would be measured.
    kept.pop("PYTHONDONTWRITEBYTECODE", None)
    return {**kept, **more}


@dataclass(frozen=True)
class StdioParty:
    """An agent that is started on pipes."""

    name: str
    command: tuple[str, ...]

    @contextmanager
    def running(self, **settings: str) -> Iterator[tuple[Driver, Process]]:
        with Process(self.command, environ(**settings)) as process:
            yield Driver(StdioChannel(process.stdin.fileno(), process.stdout.fileno())), process


@dataclass(frozen=True)
class WebParty:
    """An ASGI application under uvicorn."""

    name: str
    application: str

    @contextmanager
    def running(self) -> Iterator[tuple[int, Process]]:
        """The port it listens on, and the server's process."""
        port = free_port()
        command = [sys.executable, "-m", "uvicorn", self.application, "--port", str(port), "--log-level", "error"]
        with Process(command, environ(), pipes=False) as process:
            process.wait_until_it_listens(port)
            yield port, process


CHANNELS: dict[str, type[HttpChannel | WebSocketChannel]] = {"WebSocket": WebSocketChannel, "HTTP": HttpChannel}


@contextmanager
def connected(kind: str, port: int) -> Iterator[Driver]:
    channel: Channel = CHANNELS[kind](port)
    try:
        yield Driver(channel)
    finally:
        channel.close()


def module_command(module: str, *words: str) -> tuple[str, ...]:
    return (sys.executable, "-m", module, *words)


ECHO = module_command("acp_integration", "stdio", "benchmarks.agents.ours:EchoAgent", "--app-dir", str(ROOT))
FASTAPI = module_command("acp_fastapi", "stdio", "examples.fastapi_app.main:app", "--app-dir", str(ROOT))
DJANGO_DIR = ROOT / "examples" / "django_project"
DJANGO = module_command("acp_django", "stdio", "--app-dir", str(DJANGO_DIR), "--settings", "project.settings")


def stdio_parties() -> tuple[StdioParty, ...]:
    """Ours and both SDKs."""
    node = PEERS / "node_modules" / ".bin" / "node"
    # An ES module finds its packages by where it lies itself.
    script = shutil.copy(ROOT / "benchmarks" / "agents" / "npm_sdk.mjs", PEERS / "benchmark_agent.mjs")
    return (
        StdioParty(OURS, ECHO),
        StdioParty(PYTHON, module_command("benchmarks.agents.python_sdk")),
        StdioParty(NPM, (str(node), str(script))),
    )


WEB_PARTIES = (WebParty(OURS, "benchmarks.agents.web:app"), WebParty(PYTHON, "benchmarks.agents.python_sdk:app"))
