"""What keeping sessions costs: `python -m benchmarks.store` streams 5,000 updates without a store and with each.

Ends with 1 if SQLite takes more than twice the time of no store.
"""

import sys
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

from benchmarks import measures
from benchmarks.parties import ECHO, OURS, StdioParty

UPDATES, SIZE, ROUNDS = 5000, 20, 7
BOUND = 2.0


def main() -> int:
    with TemporaryDirectory(prefix="acp-store-") as folder:
        stores = {"none": "none", "memory": "memory:", "sqlite": f"sqlite:///{Path(folder, 'sessions.db')}"}
        seconds: dict[str, list[float]] = {name: [] for name in stores}
        for _ in range(ROUNDS):
            for name, store in stores.items():
                seconds[name].append(streamed(store))
    bare = median(seconds["none"])
    for name, found in seconds.items():
        ratio = median(found) / bare
        print(f"{name:8} {median(found) * 1e3:7.1f} ms for {UPDATES} updates, {ratio:.2f} times no store")
    return int(median(seconds["sqlite"]) > BOUND * bare)


def streamed(store: str) -> float:
    """Seconds of the best of three turns: a process of its own, its first turn not counted."""
    with StdioParty(OURS, ECHO).running(ACP_AGENT_SESSION_STORE=store) as (driver, process):
        driver.initialize()
        session = driver.new_session()
        measures.streamed(driver, process, session, UPDATES, SIZE)
        return min(measures.streamed(driver, process, session, UPDATES, SIZE).seconds for _ in range(3))


if __name__ == "__main__":
    sys.exit(main())
