"""`python -m benchmarks.profile`: where the time of each hot path goes, function by function."""

import io
import pstats
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks import measures
from benchmarks.channels import StdioChannel
from benchmarks.driver import Driver
from benchmarks.parties import ECHO, OURS, connected, environ, module_command
from benchmarks.processes import ROOT, Process, free_port

LINES = 25
FLOOD = str(ROOT / "benchmarks" / "agents" / "flood.py")

Drive = Callable[[Driver, Process, Sequence[str]], object]


def prompts(driver: Driver, process: Process, sessions: Sequence[str]) -> object:
    return measures.one_after_another(driver, process, sessions[:1], 3000)


def at_once(driver: Driver, process: Process, sessions: Sequence[str]) -> object:
    return measures.at_once(driver, process, sessions, 6400)


def stream(driver: Driver, process: Process, sessions: Sequence[str]) -> object:
    return measures.streamed(driver, process, sessions[0], 50_000, 20)


def profiled(command: Sequence[str], output: Path) -> tuple[str, ...]:
    interpreter, *words = command
    return (interpreter, "-m", "cProfile", "-o", str(output), *words)


@contextmanager
def stdio_agent(output: Path) -> Iterator[tuple[Driver, Process]]:
    with Process(profiled(ECHO, output), environ()) as process:
        yield Driver(StdioChannel(process.stdin.fileno(), process.stdout.fileno())), process


@contextmanager
def web_agent(kind: str, output: Path) -> Iterator[tuple[Driver, Process]]:
    port = free_port()
    server = module_command("uvicorn", "benchmarks.agents.web:app", "--port", str(port), "--log-level", "error")
    with Process(profiled(server, output), environ(), pipes=False) as process:
        process.wait_until_it_listens(port)
        with connected(kind, port) as driver:
            yield driver, process


def show(title: str, output: Path) -> None:
    text = io.StringIO()
    pstats.Stats(str(output), stream=text).sort_stats("tottime").print_stats(LINES)
    output.unlink()
    table = text.getvalue().replace(f"{ROOT}/", "").partition("ncalls")
    print(f"\n== {title}\n{table[1]}{table[2].rstrip()}")


def main() -> None:
    with TemporaryDirectory() as folder:
        output = Path(folder, "profile")
        for title, drive in {"prompts": prompts, "prompts of 32 sessions": at_once, "a stream": stream}.items():
            with stdio_agent(output) as (driver, process):
                _run(driver, process, drive)
            show(f"stdio: {title}", output)
        for kind in ("WebSocket", "HTTP"):
            with web_agent(kind, output) as (driver, process):
                _run(driver, process, stream)
            show(f"{kind}: a stream", output)
        client = module_command("benchmarks.clients.ours", "50000", "20", sys.executable, FLOOD)
        subprocess.run(profiled(client, output), env=environ(), cwd=ROOT, check=True, stdout=subprocess.DEVNULL)
        show("client: updates", output)
    _show_imports()


def _run(driver: Driver, process: Process, drive: Drive) -> None:
    driver.initialize()
    drive(driver, process, driver.new_sessions(32))


def _show_imports() -> None:
    command = (sys.executable, "-X", "importtime", *ECHO[1:])
    for _ in range(2):  # the first compiles
        done = subprocess.run(
            command, check=True, env=environ(), cwd=ROOT, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
        )
    lines = [line.removeprefix("import time:") for line in done.stderr.splitlines() if line.startswith("import time:")]
    print(f"\n== start of {OURS}: {len(lines) - 1} modules, the slowest first (microseconds: self, with its imports)")
    print(*sorted(lines[1:], key=lambda line: -int(line.split("|")[0]))[:LINES], sep="\n")


if __name__ == "__main__":
    main()
