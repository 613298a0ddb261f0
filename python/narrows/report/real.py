"""Tables that compare the simulation with real stacks."""

from __future__ import annotations

import math
from typing import Any

from narrows import metrics
from narrows.report.claims import percent
from narrows.report.encode import factor_text
from narrows.report.tables import DASH, Cell, Column, Table
from narrows.results.compare import TOLERANCES, Pair
from narrows.results.factors import factor
from narrows.results.figures import HEADINGS
from narrows.results.runs import Run, Runs
from narrows.studies.model import Experiment
from narrows.studies.runner import Outcome, Real

_BEYOND, _DOUBTED = "beyond", "doubted"
"""CSS classes of a difference beyond its tolerance, and of runs that are not to be trusted."""
ORDINARY = "(seeds)"
"""Mark for a difference that the variation between seeds can explain: the kernel's value is in the
simulation's prediction interval."""


def agreement(outcome: Outcome) -> Table:
    """A row per experiment: how many figures are within their tolerance, and how many runs were not sound."""
    assert outcome.real is not None
    columns = [
        Column("Experiment", number=False),
        *(Column(HEADINGS[name].title, f"within {100 * part:g} %") for name, part in TOLERANCES.items()),
        Column("Largest difference", number=False),
        Column(f"Runs {outcome.real.where}"),
        Column("not sound"),
    ]
    rows = []
    for identity, comparison in outcome.real.comparisons.items():
        runs = outcome.real.runs[identity]
        cells = [Cell(identity)]
        for name in TOLERANCES:
            judged = [pair for pair in comparison.pairs if pair.figure == name and pair.judged]
            cells.append(Cell(f"{sum(not pair.large for pair in judged)} of {len(judged)}"))
        judged = [pair for pair in comparison.pairs if pair.judged]
        worst = max(judged, key=lambda pair: pair.excess, default=None)
        experiment = outcome.study.experiment(identity)
        cells.append(Cell(_worst(worst, experiment) if worst else DASH))
        cells += [Cell(str(len(runs))), Cell(str(sum(bool(run.doubts) for run in runs)))]
        rows.append(cells)
    return Table(f"Simulation and {outcome.real.side}", columns, rows)


def _worst(pair: Pair, experiment: Experiment) -> str:
    title = HEADINGS[pair.figure].title
    difference = "from 0" if math.isnan(pair.difference) else percent(pair.difference)
    return f"{title} {difference} ({', '.join([*_point(pair, experiment), pair.name])})"


def side_by_side(experiment: Experiment, outcome: Outcome) -> Table | None:
    """A row per point and flow: goodput and mean RTT on both sides, and their difference."""
    real = outcome.real
    comparison = real.comparisons.get(experiment.id) if real is not None else None
    if real is None or comparison is None:
        return None
    rows: dict[tuple[str, ...], dict[str, Pair]] = {}
    for pair in comparison.pairs:
        if pair.entity == "flow" and pair.figure in TOLERANCES:
            rows.setdefault((*_point(pair, experiment), pair.name), {})[pair.figure] = pair
    if not rows:
        return None
    points = len(next(iter(rows))) - 1
    columns = [Column("Case" if i == 0 else "", number=False) for i in range(points)]
    columns.append(Column("Flow", number=False))
    shown = {name: HEADINGS[name] for name in TOLERANCES}
    for heading in shown.values():
        columns += [
            Column(heading.title, f"simulated, {heading.unit}"),
            Column("", f"{real.side}, {heading.unit}"),
            Column("", "difference"),
        ]
    columns.append(Column(f"{real.side.capitalize()} run", number=False))
    cells = []
    for key, found in rows.items():
        line = [Cell(text) for text in key]
        for name, heading in shown.items():
            both = found.get(name)
            line += _three(both, heading.size, both is not None and _ordinary(both, experiment, outcome))
        doubts = _doubts(next(iter(found.values())), experiment, real)
        line.append(Cell(f"do not trust: {'; '.join(doubts)}", css=_DOUBTED) if doubts else Cell("sound"))
        cells.append(line)
    bounds = " or ".join(f"{100 * part:g} % ({shown[name].title})" for name, part in TOLERANCES.items())
    notes = [
        f"Simulated means are over seeds, and means of the {real.side} are over its runs. "
        f"Differences of more than {bounds} are marked.",
        f"{ORDINARY}: the {real.side}'s value is in the range that contains 95 of 100 single runs of the "
        "simulation.",
    ]
    return Table(f"Simulation and {real.side}", columns, cells, notes)


def _three(pair: Pair | None, size: float, ordinary: bool) -> list[Cell]:
    """The three cells of a pair: both values and the difference."""
    if pair is None:
        return [Cell(DASH)] * 3
    known = not math.isnan(pair.difference)
    return [
        Cell(_value(pair.a / size)),
        Cell(_value(pair.b / size)),
        Cell(
            percent(pair.difference) if known else DASH,
            ORDINARY if pair.large and ordinary else "",
            _BEYOND if pair.large else "",
        ),
    ]


def _ordinary(pair: Pair, experiment: Experiment, outcome: Outcome) -> bool:
    """Whether the real value is in the simulation's 95 % prediction interval for another seed."""
    values = [
        float(run.column("flows", pair.figure)[row])
        for run in _at(pair, experiment, outcome.runs[experiment.id])
        for row, name in enumerate(run.names("flows", "name"))
        if name == pair.name
    ]
    interval = metrics.mean_ci(values)
    # Half the confidence interval of the mean is t s / sqrt(n). Half the prediction interval of another value
    # is t s sqrt(1 + 1/n).
    return interval.n > 1 and abs(pair.b - interval.mean) <= interval.half_width * math.sqrt(interval.n + 1)


def _at(pair: Pair, experiment: Experiment, runs: Runs) -> list[Run]:
    """The runs at the pair's point of the sweep."""
    wanted = _factors(pair, experiment)
    return list(runs.where({name: value for name, value in wanted.items() if name in runs[0].factors}))


def _value(value: float) -> str:
    """The value as text with three significant digits."""
    if math.isnan(value):
        return DASH
    return f"{value:,.{0 if abs(value) >= 100 else 1 if abs(value) >= 10 else 2}f}"


def _factors(pair: Pair, experiment: Experiment) -> dict[str, Any]:
    """The point's factors under the study's names, without keys that have the same value at all points."""
    names = {key: name for name, key in experiment.factors.items()}
    return {names[key]: factor(value) for key, value in pair.factors.items() if key in names}


def _point(pair: Pair, experiment: Experiment) -> list[str]:
    return [factor_text(name, value) for name, value in _factors(pair, experiment).items()]


def _doubts(pair: Pair, experiment: Experiment, real: Real) -> list[str]:
    """Reasons not to trust runs at the pair's point."""
    return sorted({doubt for run in _at(pair, experiment, real.runs[experiment.id]) for doubt in run.doubts})
