"""What the measures have to reach."""

from dataclasses import dataclass

from benchmarks.parties import NPM, OURS, PYTHON


@dataclass(frozen=True)
class Budget:
    """A bound: of the ratio to another party, or of our own value where there is none to compare with."""

    bound: float
    at_least: bool = True

    def held(self, value: float) -> bool:
        return value >= self.bound if self.at_least else value <= self.bound

    def __str__(self) -> str:
        return f"{'≥' if self.at_least else '≤'} {self.bound:g}"


def at_most(bound: float) -> Budget:
    return Budget(bound, at_least=False)


STREAM = "updates/s, 20 characters each, stdio"
SEQUENCE = "prompts/s, one session, stdio"
MANY = "prompts/s, 32 sessions, stdio"
START = "start to initialize, ms"
START_SET = "start to initialize with settings in the environment, ms"
START_FASTAPI = "FastAPI example: start to initialize, over its bare import, ms"
START_DJANGO = "Django example: start to initialize, over its bare import, ms"
MEMORY = "peak memory of the stdio agent, MB"
BESIDE = "another session's prompt during a stream, ms"
CLIENT = "client: updates/s with a handler"
WEB_STREAM = "updates/s, 20 characters each, {}"
GROWTH = "processor time of a prompt at {} {}, in times of one"

BUDGETS: dict[str, dict[str, Budget]] = {
    STREAM: {PYTHON: Budget(15), NPM: Budget(4)},
    SEQUENCE: {PYTHON: Budget(1.5), NPM: Budget(1)},
    MANY: {PYTHON: Budget(2), NPM: Budget(1.3)},
    START: {PYTHON: at_most(0.3), NPM: at_most(1.3)},
    START_SET: {PYTHON: at_most(0.5)},
    START_FASTAPI: {OURS: at_most(150)},
    START_DJANGO: {OURS: at_most(150)},
    MEMORY: {PYTHON: at_most(0.8), NPM: at_most(0.5)},
    BESIDE: {OURS: at_most(100)},
    CLIENT: {PYTHON: Budget(3)},
    WEB_STREAM.format("WebSocket"): {PYTHON: Budget(3)},
    WEB_STREAM.format("HTTP"): {PYTHON: Budget(3)},
    GROWTH.format(1000, "sessions"): {OURS: at_most(1.2)},
    GROWTH.format(1000, "connections"): {OURS: at_most(1.2)},
}
