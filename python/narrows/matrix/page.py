"""Presents a matrix as heat maps, as a page, and as a summary in words."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import combinations
from pathlib import Path

from narrows import congestion, metrics, units
from narrows.matrix.ask import Ask
from narrows.matrix.cells import Cell, table
from narrows.matrix.plan import helped, pairs
from narrows.metrics.statistics import Interval
from narrows.report import folder, page
from narrows.report.figure import Figure
from narrows.report.kinds.heat import FAIR, HARM, PERCENT, SHARE, Sides, Value, heat_map, number_text
from narrows.report.shade import Ramp
from narrows.report.style import look, order
from narrows.results import tables
from narrows.results.results import Results

Say = Callable[[str], None]

LEGACY = "cubic"
"""The most widely deployed controller, which is Linux's default."""
STARVING = 0.1
"""The summary names a controller as starved if its share of the goodput is below this value."""

_MAPS: tuple[tuple[str, str, str, Ramp, tuple[str, str]], ...] = (
    (
        "share",
        "Share of the goodput",
        "Two flows share the bottleneck, one of the row's algorithm and one of the column's. The value is "
        "the row's share of the goodput of both flows, in percent. Blue means more than half, brown means "
        "less. On the diagonal, both flows have the same algorithm, and the value is the larger share. "
        "Values are means over seeds.",
        SHARE,
        ("of", "against"),
    ),
    (
        "harm_goodput",
        "Harm to the goodput",
        "The row's algorithm loses goodput when it competes with the column's algorithm (the rival). The "
        "value is the loss in percent of the goodput that the row's algorithm has alone (Ware et al., "
        "HotNets 2019). If both flows get equal goodput, the value is 50. The diagonal shows the harm of an "
        "algorithm to itself. A rival with a larger value does more harm than the algorithm does to itself.",
        HARM,
        ("suffered by", "from"),
    ),
    (
        "harm_rtt",
        "Harm to the RTT",
        "Mean RTT of the row's algorithm when it competes with the column's algorithm (the rival), compared "
        "with its mean RTT alone. The value is the increase in percent of the mean RTT with the rival. Blue "
        "means that the RTT is shorter than alone.",
        HARM,
        ("suffered by", "from"),
    ),
    (
        "jain",
        "Jain's index",
        "Jain's index of both goodputs, in percent: 100 if the goodputs are equal, and 50 if one flow "
        "gets all of the goodput.",
        FAIR,
        ("of", "and"),
    ),
)


def write(
    found: Sequence[Cell],
    results: Results,
    ask: Ask,
    out: Path,
    *,
    files: bool = True,
    say: Say = lambda _: None,
) -> Path:
    """Write the cells as Parquet and CSV, and the page. With `files`, also write each heat map as a file.

    Files of heat maps of an earlier matrix in `out` are removed.
    """
    for suffix in tables.FORMATS:
        tables.write(out / f"matrix.{suffix}", table(found))
    drawn = {buffer: maps(found, ask, buffer) for buffer in ask.buffers}
    target = out / "report.html"
    target.write_text(_page(found, results, ask, drawn), encoding="utf-8")
    shown = [(figure, f"buffer {buffer}") for buffer, group in drawn.items() for figure in group]
    folder.replace(shown if files else [], out / "figures", "matrix", say)
    return target


def maps(found: Sequence[Cell], ask: Ask, buffer: str) -> list[Figure]:
    """The heat maps of a buffer."""
    labels = [look(name).label for name in order(list(ask.controllers))]
    here = [cell for cell in found if cell.buffer == buffer and cell.rival is not None]
    figures = []
    for figure, title, caption, scale, (down, across) in _MAPS:
        sides = Sides(labels, labels, down, across, frame=True)
        values = []
        for cell in here:
            interval: Interval = getattr(cell, figure)
            values.append(
                Value(
                    look(cell.algorithm).label,
                    look(str(cell.rival)).label,
                    interval.mean,
                    interval.half_width,
                    "" if math.isnan(interval.mean) else number_text(round(100 * interval.mean)),
                )
            )
        identity = f"{figure.replace('_', '-')}-{buffer}"
        figures.append(
            heat_map(
                identity, f"{title}, buffer of {buffer_text(buffer)}", caption, sides, values, scale, PERCENT
            )
        )
    return figures


def buffer_text(buffer: str) -> str:
    """The length of a queue in words."""
    return buffer.replace("bdp", " BDP") if buffer.endswith("bdp") else buffer


def _page(found: Sequence[Cell], results: Results, ask: Ask, drawn: dict[str, list[Figure]]) -> str:
    sections = [
        page.Section(
            f"buffer-{buffer}",
            f"Buffer of {buffer_text(buffer)}",
            "",
            " ".join(summary(found, buffer)),
            figures,
        )
        for buffer, figures in drawn.items()
    ]
    facts = [
        ("Narrows", str(results.metadata.get("narrows", "unknown"))),
        ("Bottleneck", ask.rate),
        ("RTT", ask.rtt),
        *([("Random loss", _loss(ask))] if ask.loss else []),
        *([("Marks above", buffer_text(ask.mark))] if ask.mark is not None else []),
        ("Duration", ask.duration),
        ("Runs", f"{len(results.runs):,}"),
        ("Seeds", f"{ask.seed} to {ask.seed + ask.seeds - 1}"),
    ]
    lead = (
        f"{len(ask.controllers)} congestion controllers, each alone and in all pairs, over one "
        f"bottleneck of {ask.rate} with an RTT of {ask.rtt}"
        f"{f' and random loss of {_loss(ask)}' if ask.loss else ''}. Cells are means over {ask.seeds} seeds; "
        "matrix.csv and the tooltips have the confidence intervals."
    )
    return page.render(
        page.Page(
            "Pairwise fairness of congestion controllers",
            lead,
            "",
            sections,
            notes=notes(ask),
            facts=facts,
            warmup_s=results.warmup_s,
        )
    )


def _loss(ask: Ask) -> str:
    return f"{100 * units.parse_probability(ask.loss):g} %"


def notes(ask: Ask) -> list[str]:
    """Notes for the reader about the controllers and the link."""
    said = []
    if ask.loss:
        said.append(
            f"The link loses {_loss(ask)} of packets at random. Shares are relative to the goodput of both "
            "flows. Harm is relative to the goodput that an algorithm has alone, which is low for algorithms "
            "that react to loss."
        )
    if ask.mark is None:
        said += [
            f"The link does not mark packets, so {look(name).label} behaves as {look(other).label}."
            for name, other in congestion.marked().items()
            if name in ask.controllers
        ]
    if any(name in helped() for name in ask.controllers):
        met = set(pairs(ask))
        absent = [
            f"{a} and {b}" for a, b in combinations(order(list(ask.controllers)), 2) if (a, b) not in met
        ]
        said.append(
            "If an algorithm follows rates from the network, the bottleneck has the rate controller that "
            "this algorithm needs, for all of its rivals."
            + (
                f" A port has one rate controller, so {len(absent)} pairs are left out: {', '.join(absent)}."
                if absent
                else ""
            )
        )
    return said


def summary(found: Sequence[Cell], buffer: str) -> list[str]:
    """Sentences about one buffer: starvation, the most and the least harmful controllers, harm to CUBIC."""
    here = {(c.algorithm, c.rival): c for c in found if c.buffer == buffer and c.rival is not None}
    names = order([name for name, _ in here])
    met = {name: [c for (own, rival), c in here.items() if rival == name != own] for name in names}
    lines, starved = [], f"{100 * STARVING:.0f} %"
    for name in names:
        victims = [cell for cell in met[name] if cell.share.mean < STARVING]
        if victims:
            victims.sort(key=lambda cell: cell.share.mean)
            listed = ", ".join(f"{look(v.algorithm).label} {100 * v.share.mean:.1f} %" for v in victims)
            lines.append(f"{look(name).label} leaves less than {starved} of the goodput to: {listed}.")
    if all(math.isnan(cell.share.mean) for cell in here.values()):
        return ["No flow delivered any data."]
    if not lines:
        lines.append(f"No algorithm leaves less than {starved} of the goodput to another.")
    lines += _most_and_least({name: _over_rivals(cells) for name, cells in met.items()})
    worse = [look(name).label for name in names if _worse_than_its_own(here, name)]
    if worse:
        lines.append(
            f"These algorithms do more harm to {look(LEGACY).label} than another {look(LEGACY).label} flow "
            f"does: {', '.join(worse)}."
        )
    return lines


def _over_rivals(cells: Sequence[Cell]) -> Interval:
    """Mean harm to the rivals and its interval. Rivals that had no goodput when they ran alone are left out.

    Each bound of the interval is the mean of the rivals' bounds. The interval is therefore valid for any
    correlation between the rivals. If the bound of any rival is unknown, the mean bound is unknown as well.
    """
    known = [cell.harm_goodput for cell in cells if not math.isnan(cell.harm_goodput.mean)]
    if not known:
        return metrics.mean_ci([])
    mean, low, high = (
        math.fsum(values) / len(known)
        for values in zip(*((i.mean, i.low, i.high) for i in known), strict=True)
    )
    return Interval(mean, low, high, min(interval.n for interval in known))


def _most_and_least(harm: dict[str, Interval]) -> list[str]:
    """A sentence that names the most and the least harmful controllers.

    Several controllers are named if their intervals overlap.
    """
    known = {name: interval for name, interval in harm.items() if not math.isnan(interval.mean)}
    if len(known) < 2:
        return []
    ranked = sorted(known, key=lambda name: -known[name].mean)
    of_all = _range(list(known.values()))
    if max(interval.n for interval in known.values()) < 2:
        return [
            f"Averaged over its rivals, an algorithm takes {of_all} of the goodput that a rival has alone. "
            "One seed gives no intervals, so there is no ranking."
        ]
    # The bounds of an unknown interval are NaN. In these comparisons, an unknown interval therefore overlaps
    # every other interval.
    first, last = known[ranked[0]], known[ranked[-1]]
    most = [name for name in ranked if not known[name].high < first.low]
    least = [name for name in ranked if not known[name].low > last.high]
    if len(most) == len(least) == len(ranked):
        return [
            "The intervals do not separate the algorithms by the goodput that they take from rivals: "
            f"{of_all} on average over all rivals."
        ]
    return [
        f"On average over all rivals, {_one_of(most)} takes the most of the goodput that a rival has alone "
        f"({_range([known[name] for name in most])}{_untold(most)}), "
        f"and {_one_of(least)} takes the least ({_range([known[name] for name in least])}{_untold(least)})."
    ]


def _one_of(names: Sequence[str]) -> str:
    labels = [look(name).label for name in names]
    return labels[0] if len(labels) == 1 else f"one of {', '.join(labels[:-1])} and {labels[-1]}"


def _untold(names: Sequence[str]) -> str:
    return "; the intervals do not separate them" if len(names) > 1 else ""


def _range(intervals: Sequence[Interval]) -> str:
    """The means of these values in words: ``51 %``, or ``5 to 51 %``."""
    # Integers avoid the output -0.
    percents = [round(100 * interval.mean) for interval in intervals]
    low, high = min(percents), max(percents)
    return f"{low} %" if low == high else f"{low} to {high} %"


def _worse_than_its_own(here: dict[tuple[str, str], Cell], name: str) -> bool:
    """Whether `name` does more harm to `LEGACY` than `LEGACY` does to itself (Ware et al., section 4).

    The confidence intervals of the two harms must be disjoint. With only one seed, the intervals are unknown
    and never count as disjoint.
    """
    beside, own = here.get((LEGACY, name)), here.get((LEGACY, LEGACY))
    if beside is None or own is None or name == LEGACY:
        return False
    return beside.harm_goodput.low > own.harm_goodput.high
