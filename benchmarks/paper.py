"""What many connections take, worked out from what one costs."""

from collections.abc import Iterator
from dataclasses import dataclass
from math import ceil

STREAMING = 0.05
"""The part of the connections whose agent speaks at a time."""

BUSY = 0.6
"""The part of its core that a worker is given to use, for what comes in bursts."""

WORKER_MB = 70


@dataclass(frozen=True)
class Costs:
    """What one connection costs.

    Attributes:
        name: how the connections are served.
        kilobytes: memory of the worker for each.
        idle: microseconds of processor time a second, for each that says nothing.
        update: microseconds of processor time for each update, in all workers that it passes.
        redis: microseconds of processor time for each update in Redis, 0 if none passes it.
    """

    name: str
    kilobytes: float
    idle: float
    update: float
    redis: float = 0.0


def on_paper(
    costs: list[Costs], updates_a_second: int, counts: tuple[int, ...] = (100_000, 1_000_000)
) -> Iterator[str]:
    """A table: connections of which 5 in 100 stream so many updates a second."""
    yield "| connections | served by | busy cores: silence + updates | workers | memory | Redis: busy cores |"
    yield "|---|---|---|---|---|---|"
    for count in counts:
        for cost in costs:
            updates = count * STREAMING * updates_a_second
            silence, speech = count * cost.idle / 1e6, updates * cost.update / 1e6
            workers = ceil((silence + speech) / BUSY)
            memory = count * cost.kilobytes / 1024**2 + workers * WORKER_MB / 1024
            redis = f"{updates * cost.redis / 1e6:.1f}" if cost.redis else "-"
            cores = f"{silence:.1f} + {speech:.1f}"
            yield f"| {count:,} | {cost.name} | {cores} | {workers} | {memory:.0f} GB | {redis} |"
