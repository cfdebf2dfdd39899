"""What is measured of one agent that runs, whatever the channel.

The agents' contract: the prompt `stream:COUNT:SIZE` sends so many updates of so many characters, any other prompt one.
"""

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from benchmarks.driver import Driver
from benchmarks.processes import Process

WARM_UP = 200


@dataclass
class Rate:
    """How long some messages took.

    Attributes:
        seconds: of time, as a person waits.
        cpu: seconds of processor time of the agent.
    """

    count: int
    seconds: float = 0.0
    cpu: float = 0.0

    @property
    def per_second(self) -> float:
        return self.count / self.seconds

    @property
    def cpu_microseconds(self) -> float:
        return self.cpu / self.count * 1e6


@contextmanager
def timed(process: Process, count: int) -> Iterator[Rate]:
    rate = Rate(count)
    used, began = process.cpu_seconds(), time.perf_counter()
    yield rate
    rate.seconds = time.perf_counter() - began
    rate.cpu = process.cpu_seconds() - used


def warm_up(driver: Driver, session: str) -> None:
    for _ in range(WARM_UP):
        driver.prompt(session)
    driver.prompt(session, "stream:500:20")


def one_after_another(driver: Driver, process: Process, sessions: Sequence[str], count: int) -> Rate:
    """Prompts with one update each, each sent when the one before was answered, on each session in turn."""
    with timed(process, count) as rate:
        for number in range(count):
            assert driver.prompt(sessions[number % len(sessions)]) == 1
    return rate


def streamed(driver: Driver, process: Process, session: str, count: int, size: int) -> Rate:
    """One prompt with many updates."""
    with timed(process, count) as rate:
        assert driver.prompt(session, f"stream:{count}:{size}") == count
    return rate


def at_once(driver: Driver, process: Process, sessions: Sequence[str], count: int) -> Rate:
    """Every session prompts again as soon as it was answered."""
    count -= count % len(sessions)
    with timed(process, count) as rate:
        owners = {driver.start(session): session for session in sessions}
        unsent, updates = count - len(sessions), 0
        for answered in driver.answers():
            if answered is None:
                updates += 1
                continue
            session = owners.pop(answered)
            if unsent:
                owners[driver.start(session)] = session
                unsent -= 1
            elif not owners:
                break
    assert updates == count
    return rate


def beside_a_stream(driver: Driver, streaming: str, other: str, count: int) -> float:
    """Seconds until a session's prompt is answered while another session streams."""
    stream = driver.start(streaming, f"stream:{count}:20")
    answers = driver.answers()
    assert next(answers) is None
    began, prompt = time.perf_counter(), driver.start(other)
    seconds, open_requests = 0.0, {stream, prompt}
    for answered in answers:
        open_requests.discard(answered or 0)
        if answered == prompt:
            seconds = time.perf_counter() - began
        if not open_requests:
            break
    return seconds
