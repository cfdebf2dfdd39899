"""One round of each group of measures: every party once, one behind the other."""

import json
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack

from benchmarks import budgets, measures
from benchmarks.driver import Driver
from benchmarks.parties import (
    CHANNELS,
    DJANGO,
    DJANGO_DIR,
    ECHO,
    FASTAPI,
    OURS,
    PYTHON,
    WEB_PARTIES,
    StdioParty,
    connected,
    environ,
    module_command,
    stdio_parties,
)
from benchmarks.processes import ROOT, Process
from benchmarks.samples import Samples

CPU = "microseconds of processor time for each of: "
SETTINGS = {"ACP_AGENT_REQUEST_TIMEOUT": "30s", "ACP_AGENT_CANCEL_GRACE_PERIOD": "2s"}
SIZES = (1, 100, 1000)


def stdio(samples: Samples) -> None:
    """(a) to (c), (e) and (f) on pipes."""
    for party in stdio_parties():
        with party.running() as (driver, process):
            driver.initialize()
            sessions = driver.new_sessions(32)
            measures.warm_up(driver, sessions[0])
            results = {
                budgets.SEQUENCE: measures.one_after_another(driver, process, sessions[:1], 1000),
                budgets.STREAM: measures.streamed(driver, process, sessions[0], 5000, 20),
                "updates/s, 2,000 characters each, stdio": measures.streamed(driver, process, sessions[0], 5000, 2000),
                budgets.MANY: measures.at_once(driver, process, sessions, 3200),
            }
            _add_rates(samples, party.name, results)
            samples.add(budgets.MEMORY, party.name, process.peak_megabytes())
            if party.name == OURS:
                seconds = measures.beside_a_stream(driver, sessions[0], sessions[1], 100_000)
                samples.add(budgets.BESIDE, OURS, seconds * 1e3)


def start(samples: Samples) -> None:
    """(d) cold starts."""
    for party in stdio_parties():
        initialized, answered = _started(party)
        samples.add(budgets.START, party.name, initialized)
        samples.add("start to the first prompt's answer, ms", party.name, answered)
        if party.name == OURS:
            samples.add(budgets.START_SET, OURS, _started(party, **SETTINGS)[0])
        elif party.name == PYTHON:
            samples.add(budgets.START_SET, PYTHON, initialized)
    _framework(samples, budgets.START_FASTAPI, FASTAPI, "import examples.fastapi_app.main")
    django = f"import sys; sys.path.insert(0, {str(DJANGO_DIR)!r}); import django; django.setup()"
    _framework(samples, budgets.START_DJANGO, DJANGO, django, DJANGO_SETTINGS_MODULE="project.settings")


def web(samples: Samples) -> None:
    """(a) to (c) under one server, over WebSocket and over HTTP."""
    for kind in CHANNELS:
        for party in WEB_PARTIES:
            with party.running() as (port, process), connected(kind, port) as driver:
                driver.initialize()
                sessions = driver.new_sessions(32)
                measures.warm_up(driver, sessions[0])
                results = {
                    f"prompts/s, one session, {kind}": measures.one_after_another(driver, process, sessions[:1], 300),
                    budgets.WEB_STREAM.format(kind): measures.streamed(driver, process, sessions[0], 5000, 20),
                    f"updates/s, 2,000 characters each, {kind}": measures.streamed(
                        driver, process, sessions[0], 5000, 2000
                    ),
                    f"prompts/s, 32 sessions, {kind}": measures.at_once(driver, process, sessions, 960),
                }
                _add_rates(samples, party.name, results)


def client(samples: Samples) -> None:
    """(g) the client's side."""
    for party, module in ((OURS, "benchmarks.clients.ours"), (PYTHON, "benchmarks.clients.python_sdk")):
        command = module_command(
            module, "20000", "20", sys.executable, str(ROOT / "benchmarks" / "agents" / "flood.py")
        )
        done = subprocess.run(command, env=environ(), cwd=ROOT, check=True, capture_output=True)
        took = json.loads(done.stdout)
        samples.add(budgets.CLIENT, party, took["received"] / took["seconds"])
        samples.add(CPU + budgets.CLIENT, party, took["cpu"] / took["received"] * 1e6)


def growth(samples: Samples) -> None:
    """(h) what a prompt costs among many sessions, and among many connections."""
    with StdioParty(OURS, ECHO).running() as (driver, process):
        driver.initialize()
        sessions: list[str] = [driver.new_session()]
        measures.warm_up(driver, sessions[0])

        def more_sessions(count: int) -> None:
            opened = driver.new_sessions(count - len(sessions))
            for session in opened:
                driver.prompt(session)  # the first prompt of a session makes what every other one finds there
            sessions.extend(opened)

        def on_sessions() -> float:
            return measures.one_after_another(driver, process, sessions, 1000).cpu

        _grow(samples, "sessions", more_sessions, on_sessions)
    with WEB_PARTIES[0].running() as (port, process), ExitStack() as stack:
        connections: list[tuple[Driver, str]] = []

        def more_connections(count: int) -> None:
            while len(connections) < count:
                opened = stack.enter_context(connected("WebSocket", port))
                opened.initialize()
                connections.append((opened, opened.new_session()))
                opened.prompt(connections[-1][1])

        def on_connections() -> float:
            with measures.timed(process, 1000) as rate:
                for number in range(1000):
                    each, session = connections[number % len(connections)]
                    each.prompt(session)
            return rate.cpu

        more_connections(1)
        measures.warm_up(*connections[0])
        _grow(samples, "connections", more_connections, on_connections)


GROUPS: dict[str, Callable[[Samples], None]] = {
    "stdio": stdio,
    "start": start,
    "web": web,
    "client": client,
    "growth": growth,
}


def _add_rates(samples: Samples, party: str, results: dict[str, measures.Rate]) -> None:
    for measure, rate in results.items():
        samples.add(measure, party, rate.per_second)
        samples.add(CPU + measure, party, rate.cpu_microseconds)


def _started(party: StdioParty, **settings: str) -> tuple[float, float]:
    """Milliseconds from the start to the answers to initialize and to the first prompt."""
    with party.running(**settings) as (driver, process):
        driver.initialize()
        initialized = time.perf_counter()
        driver.prompt(driver.new_session())
        answered = time.perf_counter()
    return (initialized - process.spawned) * 1e3, (answered - process.spawned) * 1e3


def _framework(samples: Samples, measure: str, command: tuple[str, ...], bare: str, **variables: str) -> None:
    began = time.perf_counter()
    # Says so as soon as it has imported: what the interpreter does at its end is no part of a start.
    # Collects no garbage meanwhile, as the agent does not.
    code = f"import gc; gc.disable(); {bare}; print(flush=True); input()"
    with Process((sys.executable, "-c", code), environ(**variables)) as process:
        assert process.stdout.read(1) == b"\n"
        imported = time.perf_counter() - began
    with StdioParty(OURS, command).running() as (driver, process):
        driver.initialize()
        initialized = time.perf_counter() - process.spawned
    samples.add(measure, OURS, (initialized - imported) * 1e3)


def _grow(samples: Samples, what: str, more: Callable[[int], None], cost: Callable[[], float]) -> None:
    costs: Sequence[float] = []
    for size in SIZES:
        more(size)
        costs = [*costs, cost()]
        if size > 1:
            samples.add(budgets.GROWTH.format(size, what), OURS, costs[-1] / costs[0])
