"""The table of a run, and its JSON."""

import json
import os
import platform
from collections.abc import Iterator
from typing import Any

from benchmarks.budgets import BUDGETS
from benchmarks.parties import NPM, OURS, PYTHON
from benchmarks.samples import Samples, Spread, spread

HEAD = (
    "measure", OURS, PYTHON, NPM, f"{OURS} / {PYTHON}", "budget", f"{OURS} / {NPM}", "budget"
)  # fmt: skip


def table(samples: Samples) -> str:
    """Markdown: medians, with the least and the greatest value of all rounds behind them."""
    rows = [HEAD, ("---",) * len(HEAD), *(_row(samples, measure) for measure in samples.values)]
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def missed(samples: Samples) -> Iterator[str]:
    """One line for each budget that is not held."""
    for measure, bounds in BUDGETS.items():
        for party, budget in bounds.items():
            value = _budgeted(samples, measure, party)
            if value is not None and not budget.held(value.median):
                against = "" if party == OURS else f" against the {party}"
                yield f"missed: {measure}{against}: {value.median:.3g}, budget {budget}"


def as_json(samples: Samples) -> str:
    machine = {"python": platform.python_version(), "cores": os.cpu_count(), "machine": platform.machine()}
    measured: dict[str, Any] = {
        measure: {
            "parties": {party: {"values": each, **vars(spread(each))} for party, each in values.items()},
            "ratios": {
                party: vars(samples.ratio(measure, OURS, party)) for party in values if party != OURS and OURS in values
            },
        }
        for measure, values in samples.values.items()
    }
    return json.dumps({"machine": machine, "measures": measured, "missed": [*missed(samples)]}, indent=1)


def _row(samples: Samples, measure: str) -> tuple[str, ...]:
    values = samples.values[measure]
    cells = [measure if OURS not in BUDGETS.get(measure, {}) else f"{measure} (budget {BUDGETS[measure][OURS]})"]
    cells += [_shown(spread(values[party])) if party in values else "" for party in (OURS, PYTHON, NPM)]
    for party in (PYTHON, NPM):
        cells.append(_shown(samples.ratio(measure, OURS, party)) if party in values else "")
        cells.append(str(BUDGETS.get(measure, {}).get(party, "")))
    return tuple(cells)


def _budgeted(samples: Samples, measure: str, party: str) -> Spread | None:
    values = samples.values.get(measure, {})
    if party not in values:
        return None
    return spread(values[OURS]) if party == OURS else samples.ratio(measure, OURS, party)


def _shown(value: Spread) -> str:
    return f"{_number(value.median)} ({_number(value.least)} to {_number(value.greatest)})"


def _number(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"
