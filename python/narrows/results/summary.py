"""The tables of a run on the terminal: per flow and per tight link, means over seeds."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow.compute as pc

from narrows.errors import OutputError
from narrows.results.results import Results

_BUSY = 0.5
"""A link with this utilisation, or with drops, losses or marks, is worth a row."""


@dataclass(frozen=True)
class Figure:
    """A mean over seeds and the half width of its 95 % confidence interval (NaN for one seed)."""

    mean: float
    half: float = math.nan
    seeds: int = 1
    """Number of these for which the figure is defined."""


@dataclass(frozen=True)
class Row:
    """A flow or a link, over all seeds of one point of the sweep."""

    factors: dict[str, Any]
    """The factors of this point of the sweep."""
    name: str
    """The flow's or link's."""
    cc: str
    """The flow's controller; empty for a link."""
    figures: dict[str, Figure]
    """By name, in the tables' units."""


LARGEST_GROUP = 8
"""Flows of one entry of a scenario that get a row each."""
_SUMS = ("share", "retransmits")
FLOW_FIGURES = ("goodput_bps", "share", "rtt_mean_s", "rtt_p95_s", "retransmits", "fct_s")
LINK_FIGURES = ("utilisation", "sojourn_mean_s", "sojourn_p95_s", "dropped_packets", "random_losses", "marks")


_WORTH_A_ROW = ("dropped_packets", "random_losses", "marks")
_ONLY_IF_ANY = ("random_losses", "marks")
"""Figures of links that say nothing where all of them are zero."""


def shown_of_flows(rows: Sequence[Row]) -> list[str]:
    """The figures that a table of these flows needs.

    Only flows without end have a share, only those with an end a completion time; the share of flows that
    are alone is all.
    """

    def means(name: str) -> list[float]:
        return [row.figures[name].mean for row in rows if not math.isnan(row.figures[name].mean)]

    unneeded = {
        "share": all(value == 1 for value in means("share")),
        "fct_s": not means("fct_s"),
    }
    return [name for name in FLOW_FIGURES if not unneeded.get(name, False)]


def shown_of_links(rows: Sequence[Row]) -> list[str]:
    """The figures that a table of these links needs."""
    return [
        name
        for name in LINK_FIGURES
        if name not in _ONLY_IF_ANY or any(row.figures[name].mean > 0 for row in rows)
    ]


def mean_ci(values: Sequence[float]) -> Figure:
    """Mean and 95 % confidence (Student's t, MET-90) of the values that are defined."""
    known = [value for value in values if not math.isnan(value)]
    if not known:
        return Figure(math.nan)
    if len(known) == 1:
        return Figure(known[0])
    from narrows.metrics import mean_ci as student  # noqa: PLC0415 (not needed for a single run)

    interval = student(known)
    return Figure(interval.mean, interval.half_width, interval.n)


def flows(results: Results, most: int = 200) -> list[Row]:
    """A row per flow and point of the sweep, of at most `most` flows of a run (the first ones).

    Rows of a run are in the order of the scenario's entries. Flows of a group or a source with more than
    `LARGEST_GROUP` are one row: sums of share and retransmits, means of the rest.
    """
    figures = [figure for figure in FLOW_FIGURES if figure != "share"]
    rows = _records(results, "flows", ["flow", "source", "name", "cc", "size_bytes", *figures])
    entries = {name: place for place, name in enumerate(results.metadata.get("entries", []))}
    rows.sort(key=lambda row: (row["run"], entries.get(row["source"], len(entries)), row["flow"]))
    _add_shares(rows)
    entities = [row for row in _groups_as_one(rows) if row["flow"] < most]
    return _over_seeds(results, entities, "flow", FLOW_FIGURES)


def _add_shares(rows: list[dict[str, Any]]) -> None:
    """`share`: a flow's goodput over the sum of goodputs of its run, among flows that send without end.

    The goodput of a flow that ends is that of its own short life, and adding many of them up would give
    rates that were never there together; such a flow has a completion time, and no share.
    """
    totals: dict[int, float] = {}
    for row in rows:
        row["share"] = math.nan if _defined(row["size_bytes"]) else row["goodput_bps"]
        totals[row["run"]] = totals.get(row["run"], 0.0) + _defined(row["share"])
    for row in rows:
        total = totals[row["run"]]
        row["share"] = row["share"] / total if total > 0 else math.nan


def _groups_as_one(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Rows of large groups merged, and all rows of a run numbered again."""
    by_source: dict[tuple[int, str], list[dict[str, Any]]] = {}
    for row in rows:
        by_source.setdefault((row["run"], row["source"]), []).append(row)
    large = {source for (_, source), group in by_source.items() if len(group) > LARGEST_GROUP}
    merged: list[dict[str, Any]] = []
    places: dict[int, int] = {}
    for (run, source), group in by_source.items():
        for row in [_merged(source, group)] if source in large else group:
            row["flow"] = places[run] = places.get(run, -1) + 1
            merged.append(row)
    return merged


def _merged(source: str, group: list[dict[str, Any]]) -> dict[str, Any]:
    row = dict(group[0], name=f"{source} (group)")
    for name in FLOW_FIGURES:
        known = [float(member[name]) for member in group if not math.isnan(member[name])]
        divisor = 1 if name in _SUMS else len(known)
        row[name] = math.fsum(known) / divisor if known else math.nan
    return row


def links(results: Results, most: int = 20) -> list[Row]:
    """A row per tight link (half used or more, or with drops, losses or marks) and point of the sweep."""
    rows = _records(results, "links", ["link", "name", *LINK_FIGURES])
    tight = {
        row["link"]
        for row in rows
        if _defined(row["utilisation"]) >= _BUSY or any(_defined(row[name]) for name in _WORTH_A_ROW)
    }
    chosen = set(sorted(tight)[:most])
    return _over_seeds(results, [row for row in rows if row["link"] in chosen], "link", LINK_FIGURES)


def _defined(value: float) -> float:
    return 0.0 if math.isnan(value) else value


def _records(results: Results, name: str, columns: list[str]) -> list[dict[str, Any]]:
    table = results.table(name)
    if len(table) == 0:
        return []
    records: list[dict[str, Any]] = table.select(["run", *columns]).to_pylist()
    for record in records:
        for key, value in record.items():
            if value is None:
                record[key] = math.nan
    return records


def _over_seeds(
    results: Results, rows: list[dict[str, Any]], entity: str, figures: tuple[str, ...]
) -> list[Row]:
    runs = {run["run"]: run for run in results.runs.to_pylist()}
    factors = results.factors
    groups: dict[tuple[Any, ...], list[dict[str, Any]]] = {}
    for row in rows:
        if row["run"] not in runs:
            raise OutputError(
                f"{results.folder}: found a {entity} of run {row['run']}, expected one of the {len(runs)} "
                "that the table runs has"
            )
        point = tuple(runs[row["run"]][factor] for factor in factors)
        groups.setdefault((point, row[entity]), []).append(row)
    return [
        Row(
            factors=dict(zip(factors, point, strict=True)),
            name=str(group[0]["name"]),
            cc=str(group[0].get("cc", "")),
            figures={name: mean_ci([float(row[name]) for row in group]) for name in figures},
        )
        for (point, _), group in groups.items()
    ]


WHOLE_RUN = ("retransmits", "dropped_packets", "random_losses", "marks")
"""Figures that count from the start of a run; others leave out the warm-up."""
_SAME_TIME = 0.01
"""Part of the longest interval by which those of flows may differ and still be called one."""


def counted_from_the_start(flows: Sequence[Row], links: Sequence[Row]) -> list[str]:
    """The shown figures that count the warm-up too, where they are not all zero."""
    shown = [(shown_of_flows(flows), flows), (shown_of_links(links), links)]
    return [
        name
        for names, rows in shown
        for name in names
        if name in WHOLE_RUN and any(row.figures[name].mean > 0 for row in rows)
    ]


def at_different_times(results: Results) -> bool:
    """Whether flows of a run were measured over different times, so that their goodputs may not add up."""
    warmup = float(results.metadata.get("warmup_s", 0.0))
    spans: dict[int, list[tuple[float, float]]] = {}
    for row in _records(results, "flows", ["start_s", "end_s", "goodput_bps"]):
        if math.isnan(row["goodput_bps"]):
            continue
        begin = max(warmup, _defined(row["start_s"]))
        # Without an end of its own a flow has the run's.
        spans.setdefault(row["run"], []).append(
            (begin, math.inf if math.isnan(row["end_s"]) else row["end_s"])
        )
    return any(_differ(own) for own in spans.values())


def _differ(spans: Sequence[tuple[float, float]]) -> bool:
    begins, ends = [begin for begin, _ in spans], [end for _, end in spans]
    last = max((end for end in ends if math.isfinite(end)), default=math.inf)
    if math.isinf(last):
        # All of them to the end of the run, of which the table does not tell when it is.
        return max(begins) - min(begins) > _SAME_TIME * max(begins)
    apart = max(max(begins) - min(begins), max(ends) - min(ends))
    return apart > _SAME_TIME * (last - min(begins))


_COUNTS = ("events", "packet_hops", "delivered_packets", "peak_flows")


def point_of(factors: dict[str, Any]) -> tuple[Any, ...]:
    """A point of the sweep by the values of its factors."""
    return tuple(factors.values())


def same_runs(results: Results, rows: Sequence[Row]) -> list[tuple[Any, ...]]:
    """The points whose seeds, several, made no difference, neither to what was counted nor to `rows`."""
    counted: dict[tuple[Any, ...], list[tuple[Any, ...]]] = {}
    for run in results.runs.to_pylist():
        point = tuple(run[factor] for factor in results.factors)
        counted.setdefault(point, []).append(tuple(run.get(name) for name in _COUNTS))
    # Equal figures may differ from their mean by the rounding of a sum.
    apart = {
        point_of(row.factors)
        for row in rows
        if any(f.half > 1e-9 * abs(f.mean) for f in row.figures.values() if not math.isnan(f.half))
    }
    return [
        point
        for point, counts in counted.items()
        if len(counts) > 1 and len(set(counts)) == 1 and point not in apart
    ]


def totals(results: Results) -> dict[str, int]:
    """Sums of what the runs counted."""
    runs = results.runs
    return {
        name: int(pc.sum(runs[name]).as_py() or 0)
        for name in ("events", "packet_hops")
        if name in runs.column_names
    }
