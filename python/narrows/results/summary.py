"""The summary of a run: means over seeds per flow and per bottleneck link."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from narrows.errors import OutputError
from narrows.results import tables
from narrows.results.results import Results

_BUSY = 0.5
"""A link has a row if it has at least this utilisation, or drops, losses or marks."""


@dataclass(frozen=True)
class Figure:
    """A mean over seeds and the half width of its 95 % confidence interval (NaN for one seed)."""

    mean: float
    half: float = math.nan
    seeds: int = 1
    """Number of seeds with a defined figure."""


@dataclass(frozen=True)
class Row:
    """A flow or a link, over all seeds of one point of the sweep."""

    factors: dict[str, Any]
    """Factors of this point of the sweep."""
    name: str
    """Name of the flow or link."""
    cc: str
    """The flow's controller (empty for a link)."""
    figures: dict[str, Figure]
    """Figures by name, in the units of the tables."""
    by_seed: dict[str, dict[int, float]] = field(default_factory=dict)
    """The values that each figure is the mean of, by seed."""


GROUPS = "rows of a group have sums of share and retransmits, and means of the other figures"
INTERVALS = "\N{PLUS-MINUS SIGN} is the 95 % confidence interval of the mean over seeds"
SAME_EVERYWHERE = "=: all seeds give the same result"
SAME = "=: all seeds of this point give the same result"
"""Notes below tables."""
LARGEST_GROUP = 8
"""Largest number of flows of an entry that have a row each. Larger entries have one row."""
_SUMS = ("share", "retransmits")
FLOW_FIGURES = ("goodput_bps", "share", "rtt_mean_s", "rtt_p95_s", "retransmits", "fct_s")
LINK_FIGURES = ("utilisation", "sojourn_mean_s", "sojourn_p95_s", "dropped_packets", "random_losses", "marks")


_WORTH_A_ROW = ("dropped_packets", "random_losses", "marks")
_ONLY_IF_ANY = ("random_losses", "marks")
"""Figures of links that a table shows only if they are not zero for at least one link."""


def shown_of_flows(rows: Sequence[Row]) -> list[str]:
    """The figures for a table of these flows.

    Only unlimited flows have a share, and only flows with a size have a completion time. A single flow always
    has the whole share, which is not shown.
    """

    def means(name: str) -> list[float]:
        return [row.figures[name].mean for row in rows if not math.isnan(row.figures[name].mean)]

    unneeded = {
        "share": all(value == 1 for value in means("share")),
        "fct_s": not means("fct_s"),
    }
    return [name for name in FLOW_FIGURES if not unneeded.get(name, False)]


def shown_of_links(rows: Sequence[Row]) -> list[str]:
    """The names of the figures that a table of these links shows."""
    return [
        name
        for name in LINK_FIGURES
        if name not in _ONLY_IF_ANY or any(row.figures[name].mean > 0 for row in rows)
    ]


def mean_ci(values: Sequence[float]) -> Figure:
    """Mean and 95 % confidence interval (Student's t, MET-90) of the defined values."""
    known = [value for value in values if not math.isnan(value)]
    if not known:
        return Figure(math.nan)
    if len(known) == 1:
        return Figure(known[0])
    from narrows.metrics import mean_ci as student  # noqa: PLC0415 (not needed for a single run)

    interval = student(known)
    return Figure(interval.mean, interval.half_width, interval.n)


def flows(results: Results, most: int = 200) -> list[Row]:
    """A row per flow and point of the sweep, for at most the first `most` flows of a run.

    Rows of a run are in the order of the scenario's entries. A group or source with more than `LARGEST_GROUP`
    flows has one row with sums of share and retransmits, and means of other figures.
    """
    figures = [figure for figure in FLOW_FIGURES if figure != "share"]
    rows = _records(results, "flows", ["flow", "source", "name", "cc", "size_bytes", *figures])
    entries = {name: place for place, name in enumerate(results.metadata.get("entries", []))}
    rows.sort(key=lambda row: (row["run"], entries.get(row["source"], len(entries)), row["flow"]))
    _add_shares(rows)
    entities = [row for row in _groups_as_one(rows) if row["flow"] < most]
    return _over_seeds(results, entities, "flow", FLOW_FIGURES)


def _add_shares(rows: list[dict[str, Any]]) -> None:
    """Add `share`: a flow's goodput, divided by the sum of the goodputs of all unlimited flows of its run.

    The goodput of a flow with a size refers to its own duration, so a sum over such flows would not be a rate
    at any time. Such a flow has a completion time and no share.
    """
    totals: dict[int, float] = {}
    for row in rows:
        row["share"] = math.nan if _defined(row["size_bytes"]) else row["goodput_bps"]
        totals[row["run"]] = totals.get(row["run"], 0.0) + _defined(row["share"])
    for row in rows:
        total = totals[row["run"]]
        row["share"] = row["share"] / total if total > 0 else math.nan


def _groups_as_one(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Merge the rows of large groups, and renumber all rows of a run."""
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


def group_name(source: str) -> str:
    """Name of the row of a large group or source."""
    return f"{source} (group)"


def _merged(source: str, group: list[dict[str, Any]]) -> dict[str, Any]:
    row = dict(group[0], name=group_name(source))
    for name in FLOW_FIGURES:
        known = [float(member[name]) for member in group if not math.isnan(member[name])]
        divisor = 1 if name in _SUMS else len(known)
        row[name] = math.fsum(known) / divisor if known else math.nan
    return row


def links(results: Results, most: int = 20) -> list[Row]:
    """A row per point and bottleneck link.

    A bottleneck is at least half used, or has drops, losses or marks.
    """
    rows = _records(results, "links", ["link", "name", *LINK_FIGURES])
    chosen = set(sorted({row["link"] for row in rows if _is_bottleneck(row)})[:most])
    return _over_seeds(results, [row for row in rows if row["link"] in chosen], "link", LINK_FIGURES)


def all_links(results: Results) -> tuple[list[Row], set[str]]:
    """A row per link and point of the sweep, and the names of the bottleneck links of a run."""
    rows = _records(results, "links", ["link", "name", *LINK_FIGURES])
    bottlenecks = {str(row["name"]) for row in rows if _is_bottleneck(row)}
    return _over_seeds(results, rows, "link", LINK_FIGURES), bottlenecks


def _is_bottleneck(row: dict[str, Any]) -> bool:
    return _defined(row["utilisation"]) >= _BUSY or any(_defined(row[name]) for name in _WORTH_A_ROW)


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
        # Names identify flows. Numbers do not, because each seed has its own number of arrivals.
        groups.setdefault((point, row["name"]), []).append(row)
    made = []
    for (point, _), group in groups.items():
        seeds = [int(runs[row["run"]]["seed"]) for row in group]
        values = {name: [float(row[name]) for row in group] for name in figures}
        made.append(
            Row(
                factors=dict(zip(factors, point, strict=True)),
                name=str(group[0]["name"]),
                cc=str(group[0].get("cc", "")),
                figures={name: mean_ci(found) for name, found in values.items()},
                by_seed={name: dict(zip(seeds, found, strict=True)) for name, found in values.items()},
            )
        )
    return made


WHOLE_RUN = ("retransmits", "dropped_packets", "random_losses", "marks")
"""Figures that count from the start of a run. Other figures exclude the warm-up."""
_SAME_TIME = 0.01
"""Two intervals count as equal if they differ by at most this part of the longest interval."""


def counted_from_the_start(flows: Sequence[Row], links: Sequence[Row]) -> list[str]:
    """The shown figures that include the warm-up and are not all zero."""
    shown = [(shown_of_flows(flows), flows), (shown_of_links(links), links)]
    return [
        name
        for names, rows in shown
        for name in names
        if name in WHOLE_RUN and any(row.figures[name].mean > 0 for row in rows)
    ]


def at_different_times(results: Results) -> bool:
    """Whether flows of a run were measured over different times, so that their goodputs cannot be added."""
    spans: dict[int, list[tuple[float, float]]] = {}
    for row in _records(results, "flows", ["start_s", "end_s", "goodput_bps"]):
        if math.isnan(row["goodput_bps"]):
            continue
        begin = max(results.warmup_s, _defined(row["start_s"]))
        # A flow without an end time ends with the run.
        spans.setdefault(row["run"], []).append(
            (begin, math.inf if math.isnan(row["end_s"]) else row["end_s"])
        )
    return any(_differ(own) for own in spans.values())


def _differ(spans: Sequence[tuple[float, float]]) -> bool:
    begins, ends = [begin for begin, _ in spans], [end for _, end in spans]
    last = max((end for end in ends if math.isfinite(end)), default=math.inf)
    if math.isinf(last):
        # All flows end with the run. The table does not contain the end of the run.
        return max(begins) - min(begins) > _SAME_TIME * max(begins)
    apart = max(max(begins) - min(begins), max(ends) - min(ends))
    return apart > _SAME_TIME * (last - min(begins))


def point_text(value: Any) -> str:
    """The value of a factor as text, as a scenario writes it; numbers have at most six digits."""
    return f"{value:g}" if isinstance(value, float) else str(value)


def point_of(factors: dict[str, Any]) -> tuple[Any, ...]:
    """A point of the sweep, as the values of its factors."""
    return tuple(factors.values())


def same_runs(results: Results, rows: Sequence[Row]) -> list[tuple[Any, ...]]:
    """The points with several seeds whose runs have identical counts and figures in `rows`."""
    counted: dict[tuple[Any, ...], list[tuple[Any, ...]]] = {}
    for run in results.runs.to_pylist():
        point = tuple(run[factor] for factor in results.factors)
        counted.setdefault(point, []).append(tuple(run.get(name) for name in tables.RUN_COUNTS))
    # Equal figures may differ from their mean by rounding.
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
    """The sum of each counter over all runs."""
    runs = results.runs
    return {
        name: sum(count for count in runs[name].to_pylist() if count is not None)
        for name in ("events", "packet_hops")
        if name in runs.column_names
    }
