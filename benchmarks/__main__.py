"""`python -m benchmarks`: measures in rounds, prints a table and the budgets that are missed, and writes JSON."""

import argparse
import sys
from pathlib import Path

from benchmarks import report
from benchmarks.processes import ROOT
from benchmarks.rounds import GROUPS
from benchmarks.samples import Samples


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("groups", nargs="*", metavar="GROUP", help=f"{', '.join(GROUPS)} (default: all)")
    parser.add_argument("--rounds", type=int, default=5, help="how often each is measured (default: 5)")
    parser.add_argument("--json", type=Path, default=ROOT / ".peers" / "benchmarks.json", metavar="FILE")
    options = parser.parse_args()
    unknown = [name for name in options.groups if name not in GROUPS]
    if unknown:
        parser.error(f"there is no group {', '.join(unknown)}")
    samples = Samples()
    for name in options.groups or GROUPS:
        GROUPS[name](Samples())  # the first round compiles, fills caches, and does not count
        for number in range(options.rounds):
            print(f"{name}: round {number + 1} of {options.rounds}", file=sys.stderr)
            GROUPS[name](samples)
    print(report.table(samples))
    print(*report.missed(samples), sep="\n")
    options.json.write_text(report.as_json(samples))


if __name__ == "__main__":
    main()
