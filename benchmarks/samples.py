"""What was measured: values by measure and party, in the order of the rounds."""

import statistics
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Spread:
    """A median between the least and the greatest value."""

    median: float
    least: float
    greatest: float


def spread(values: Sequence[float]) -> Spread:
    return Spread(statistics.median(values), min(values), max(values))


class Samples:
    """Values of one run."""

    def __init__(self) -> None:
        self.values: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))

    def add(self, measure: str, party: str, value: float) -> None:
        self.values[measure][party].append(value)

    def ratio(self, measure: str, party: str, other: str) -> Spread:
        """Of the values of one round, which were measured next to each other; rounds differ more than parties do."""
        pairs = zip(self.values[measure][party], self.values[measure][other], strict=True)
        return spread([mine / theirs for mine, theirs in pairs])
