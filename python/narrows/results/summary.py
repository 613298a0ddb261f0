"""The summary of a run: means over seeds per flow and per bottleneck link."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from narrows.errors import OutputError
from narrows.results import tables
from narrows.results.arrow import floats, integers
from narrows.results.frame import Codes, Frame, Numbers, coded, distinct, grouped
from narrows.results.results import Results

_BUSY = 0.5
"""A link has a row if its utilisation is at least this value, or if it has drops, losses or marks."""


@dataclass(frozen=True)
class Figure:
    """A mean over seeds and the half width of its 95 % confidence interval (NaN for one seed)."""

    mean: float
    half: float = math.nan
    seeds: int = 1
    """Number of seeds with a defined figure."""


@dataclass(frozen=True)
class Row:
    """The figures of a flow or link at one point of the sweep, from the runs of all its seeds."""

    factors: dict[str, Any]
    """Factors of this point of the sweep."""
    name: str
    """Name of the flow or link."""
    cc: str
    """The flow's controller (empty for a link)."""
    figures: dict[str, Figure]
    """Figures by name, in the units of the tables."""
    by_seed: Mapping[str, dict[int, float]] = field(default_factory=dict)
    """For each figure, the values by seed. `figures` has their means."""


GROUPS = "rows of a group have sums of share and retransmits, and means of the other figures"
INTERVALS = "\N{PLUS-MINUS SIGN} is the 95 % confidence interval of the mean over seeds"
SAME_EVERYWHERE = "=: all seeds give the same result"
SAME = "=: all seeds of this point give the same result"
"""Notes below tables."""
LARGEST_GROUP = 8
"""If an entry of the scenario has more flows than this, its flows share one row. Otherwise each flow has a
row."""
_SUMS = ("share", "retransmits")
_COMPUTED = ("share", "request_mean_s")
"""Figures of flows that are not columns of the table of flows."""
FLOW_FIGURES = ("goodput_bps", "share", "rtt_mean_s", "rtt_p95_s", "retransmits", "fct_s", "request_mean_s")
LINK_FIGURES = ("utilisation", "sojourn_mean_s", "sojourn_p95_s", "dropped_packets", "random_losses", "marks")


_WORTH_A_ROW = ("dropped_packets", "random_losses", "marks")
_ONLY_IF_ANY = ("random_losses", "marks")
"""Figures that a table of links shows only if at least one link has a value above zero."""


def shown_of_flows(rows: Sequence[Row]) -> list[str]:
    """The figures for a table of these flows.

    Only unlimited flows have a share, only flows with a size have a completion time, and only flows with
    requests have request times. The share of a single flow is always 1 and is not shown.
    """

    def means(name: str) -> list[float]:
        return [row.figures[name].mean for row in rows if not math.isnan(row.figures[name].mean)]

    unneeded = {
        "share": all(value == 1 for value in means("share")),
        "fct_s": not means("fct_s"),
        "request_mean_s": not means("request_mean_s"),
    }
    return [name for name in FLOW_FIGURES if not unneeded.get(name, False)]


def shown_of_links(rows: Sequence[Row]) -> list[str]:
    """The names of the figures that a table of these links shows."""
    return [
        name
        for name in LINK_FIGURES
        if name not in _ONLY_IF_ANY or any(row.figures[name].mean > 0 for row in rows)
    ]


def mean_ci(values: Sequence[float] | Numbers) -> Figure:
    """Mean and 95 % confidence interval (Student's t, MET-90) of the defined values."""
    known = np.asarray(values, dtype=np.float64)
    known = known[~np.isnan(known)]
    if len(known) == 0:
        return Figure(math.nan)
    if len(known) == 1:
        return Figure(float(known[0]))
    from narrows.metrics import mean_ci as student  # noqa: PLC0415 (not needed for a single run)

    interval = student(known)
    return Figure(interval.mean, interval.half_width, interval.n)


def flows(results: Results, most: int = 200) -> list[Row]:
    """Return a row per flow and point of the sweep. Only the first `most` flows of a run have rows.

    Rows of a run are in the order of the scenario's entries. A group or source with more than `LARGEST_GROUP`
    flows has one row with sums of share and retransmits, and means of other figures.
    """
    figures = [figure for figure in FLOW_FIGURES if figure not in _COMPUTED]
    frame = Frame.of(results, "flows", ["flow", "size_bytes", *figures], ["source", "name", "cc"])
    if len(frame) == 0:
        return []
    entries = {name: place for place, name in enumerate(results.metadata.get("entries", []))}
    source = frame.texts["source"]
    places = np.array([entries.get(word, len(entries)) for word in source.words])
    frame.numbers["request_mean_s"] = _request_times(results, frame)
    frame = frame.take(np.lexsort((frame.numbers["flow"], places[source.codes], frame.run)))
    frame.numbers["share"] = _shares(frame)
    frame = _groups_as_one(frame)
    return _over_seeds(results, frame.take(frame.numbers["flow"] < most), "flow", FLOW_FIGURES)


def _request_times(results: Results, flows: Frame) -> Numbers:
    """For each flow, the mean time from a request to its complete object (NaN without complete objects)."""
    requests = Frame.of(results, "requests", ["flow", "requested_s", "received_s"])
    taken = requests.numbers["received_s"] - requests.numbers["requested_s"]
    is_complete = ~np.isnan(taken)
    requests, taken = requests.take(is_complete), taken[is_complete]
    if len(requests) == 0:
        return np.full(len(flows), math.nan)
    run, flow = (
        np.concatenate(pair)
        for pair in ((flows.run, requests.run), (flows.numbers["flow"], requests.numbers["flow"]))
    )
    same = grouped(run, flow.astype(np.int64)).codes
    of_flow, of_request = same[: len(flows)], same[len(flows) :]
    sums = np.bincount(of_request, weights=taken, minlength=len(flows))[of_flow]
    counts = np.bincount(of_request, minlength=len(flows))[of_flow]
    with np.errstate(invalid="ignore"):
        return sums / np.where(counts == 0, math.nan, counts)


def _shares(frame: Frame) -> Numbers:
    """A flow's goodput, divided by the sum of the goodputs of all unlimited flows of its run.

    Flows with a size have no share, because their goodput is a mean over their own duration. The sum of such
    goodputs would not be the total rate at any time.
    """
    size = frame.numbers["size_bytes"]
    unlimited = np.where(np.isnan(size) | (size == 0), frame.numbers["goodput_bps"], math.nan)
    _, runs = distinct(frame.run)
    total = np.bincount(runs, weights=np.nan_to_num(unlimited, nan=0.0))[runs]
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(total > 0, unlimited / total, math.nan)


def _groups_as_one(frame: Frame) -> Frame:
    """Merge the rows of each large group into one row, and number the rows of a run again."""
    source, name = frame.texts["source"], frame.texts["name"]
    groups = grouped(frame.run, source.codes)
    codes = source.codes[groups.firsts[groups.sizes > LARGEST_GROUP]]
    large = codes[distinct(codes)[0]]
    is_merged = np.isin(source.codes[groups.firsts], large)
    merged = {int(code): len(name.words) + place for place, code in enumerate(large)}
    name.words += [group_name(source.words[code]) for code in merged]
    for group in np.flatnonzero(is_merged):
        members = groups[int(group)]
        first = members[0]
        for figure in FLOW_FIGURES:
            values = frame.numbers[figure][members]
            known = values[~np.isnan(values)]
            divisor = 1 if figure in _SUMS else len(known)
            frame.numbers[figure][first] = math.fsum(known) / divisor if len(known) else math.nan
        name.codes[first] = merged[int(source.codes[first])]
    is_kept = np.ones(len(frame), bool)
    is_kept[groups.order] = ~np.repeat(is_merged, groups.sizes)
    is_kept[groups.firsts] = True
    kept = frame.take(groups.order[is_kept[groups.order]])
    in_run = grouped(kept.run)
    kept.numbers["flow"][in_run.order] = np.arange(len(kept)) - np.repeat(in_run.bounds[:-1], in_run.sizes)
    return kept


def group_name(source: str) -> str:
    """Name of the row of a large group or source."""
    return f"{source} (group)"


def links(results: Results, most: int = 20) -> list[Row]:
    """A row per point and bottleneck link.

    A link is a bottleneck if its utilisation is at least 50 %, or if it has drops, losses or marks.
    """
    frame = Frame.of(results, "links", ["link", *LINK_FIGURES], ["name"])
    link = frame.numbers["link"]
    bottlenecks = link[_are_bottlenecks(frame)]
    chosen = bottlenecks[distinct(bottlenecks)[0]][:most]
    return _over_seeds(results, frame.take(np.isin(link, chosen)), "link", LINK_FIGURES)


def all_links(results: Results) -> tuple[list[Row], set[str]]:
    """A row per link and point of the sweep, and the names of links that are a bottleneck in any run."""
    frame = Frame.of(results, "links", ["link", *LINK_FIGURES], ["name"])
    name = frame.texts["name"]
    bottlenecks = {name.words[code] for code in set(name.codes[_are_bottlenecks(frame)].tolist())}
    return _over_seeds(results, frame, "link", LINK_FIGURES), bottlenecks


def _are_bottlenecks(frame: Frame) -> NDArray[np.bool_]:
    chosen: NDArray[np.bool_] = frame.numbers["utilisation"] >= _BUSY
    for name in _WORTH_A_ROW:
        chosen |= np.nan_to_num(frame.numbers[name], nan=0.0) != 0
    return chosen


class _BySeed(Mapping[str, dict[int, float]]):
    """For each figure, a dictionary of its values by seed. The dictionary is made when it is first used."""

    def __init__(self, seeds: Codes, values: Mapping[str, Numbers]) -> None:
        self._seeds, self._values = seeds, values

    def __getitem__(self, name: str) -> dict[int, float]:
        return dict(zip(self._seeds.tolist(), self._values[name].tolist(), strict=True))

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)


def _over_seeds(results: Results, frame: Frame, entity: str, figures: Sequence[str]) -> list[Row]:
    if len(frame) == 0:
        return []
    runs, seed = (integers(results.column("runs", name)) for name in ("run", "seed"))
    if (unknown := frame.run[~np.isin(frame.run, runs)]).size:
        raise OutputError(
            f"{results.place}: found a {entity} of run {unknown[0]}, expected one of the {len(runs)} "
            "that the table runs has"
        )
    order = np.argsort(runs, kind="stable")
    found = order[np.searchsorted(runs, frame.run, sorter=order)]
    factors = {factor: results.column("runs", factor) for factor in results.factors}
    point = grouped(np.zeros(len(runs)), *(_codes(column) for column in factors.values())).codes
    name = frame.texts["name"]
    # Names identify flows in the runs of all seeds. Numbers do not, because the number of arrivals differs
    # between seeds.
    groups = grouped(point[found], name.codes)
    made = []
    for group in range(len(groups)):
        rows = groups[group]
        run, first = found[rows], int(rows[0])
        values = {figure: frame.numbers[figure][rows] for figure in figures}
        cc = frame.texts.get("cc")
        made.append(
            Row(
                factors={factor: column[int(run[0])].as_py() for factor, column in factors.items()},
                name=name.words[name.codes[first]],
                cc=cc.words[cc.codes[first]] if cc is not None else "",
                figures={figure: mean_ci(known) for figure, known in values.items()},
                by_seed=_BySeed(seed[run], values),
            )
        )
    return made


def _codes(column: pa.ChunkedArray[Any]) -> Codes:
    """Replace each distinct value of a factor by a number."""
    if pa.types.is_floating(column.type) or pa.types.is_integer(column.type):
        return distinct(floats(column))[1]
    return coded(column).codes


WHOLE_RUN = ("retransmits", "request_mean_s", "dropped_packets", "random_losses", "marks")
"""Figures that include the warm-up. Other figures exclude it."""
_SAME_TIME = 0.01
"""Two measurement times are treated as equal if they differ by at most this fraction of the longest time."""


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
    """Whether flows of a run were measured over different times. If so, their goodputs cannot be added."""
    frame = Frame.of(results, "flows", ["start_s", "end_s", "goodput_bps"])
    frame = frame.take(~np.isnan(frame.numbers["goodput_bps"]))
    if len(frame) == 0:
        return False
    begin = np.maximum(results.warmup_s, np.nan_to_num(frame.numbers["start_s"], nan=0.0))
    # A flow that has no end time lasts until the end of the run.
    end = np.nan_to_num(frame.numbers["end_s"], nan=math.inf, posinf=math.inf)
    groups = grouped(frame.run)
    begin, end, starts = begin[groups.order], end[groups.order], groups.bounds[:-1]
    latest, earliest = np.maximum.reduceat(begin, starts), np.minimum.reduceat(begin, starts)
    last = np.maximum.reduceat(np.where(np.isinf(end), -math.inf, end), starts)
    with np.errstate(invalid="ignore"):
        ends_apart = np.maximum.reduceat(end, starts) - np.minimum.reduceat(end, starts)
    # If all flows of a run last until the end of the run, the table does not contain the time of that end.
    apart = np.where(np.isinf(last), latest - earliest, np.maximum(latest - earliest, ends_apart))
    limit = np.where(np.isinf(last), latest, last - earliest)
    return bool(np.any(apart > _SAME_TIME * limit))


def point_text(value: Any) -> str:
    """The value of a factor in the notation of scenarios.

    Only floats are rounded to six significant digits.
    """
    return f"{value:g}" if isinstance(value, float) else str(value)


def point_of(factors: dict[str, Any]) -> tuple[Any, ...]:
    """A point of the sweep, as the values of its factors."""
    return tuple(factors.values())


def same_runs(results: Results, rows: Sequence[Row]) -> list[tuple[Any, ...]]:
    """The points of the sweep that have several seeds, all of which give the same counts and figures."""
    counted: dict[tuple[Any, ...], list[tuple[Any, ...]]] = {}
    for run in results.runs.to_pylist():
        point = tuple(run[factor] for factor in results.factors)
        counted.setdefault(point, []).append(tuple(run.get(name) for name in tables.RUN_COUNTS))
    # Rounding can give equal figures a tiny half width, so the limit is above zero.
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


def failures(results: Results) -> list[str]:
    """Return a sentence for each kind of event that explains why a run differs from what its scenario asks.

    Such events are lost connections, and phases that never began although changes wait for them.
    """
    from narrows import _native  # noqa: PLC0415 (takes long to load)

    lost: dict[str, list[tuple[str, float, int]]] = {}
    missed: dict[tuple[str, str, int], int] = {}
    # This loop is in Python, because pyarrow.compute takes long to import.
    for row, kind in enumerate(map(str, results.events["kind"].to_pylist())):
        if not kind.startswith((_native.CONNECTION_LOST, _native.PHASE_NEVER_BEGAN)):
            continue
        entity, t_s, run, value = (
            results.events[name][row].as_py() for name in ("entity", "t_s", "run", "value")
        )
        if kind.startswith(_native.CONNECTION_LOST):
            lost.setdefault(kind.removeprefix(_native.CONNECTION_LOST), []).append((entity, t_s, run))
        else:
            phase = (entity, kind.removeprefix(_native.PHASE_NEVER_BEGAN), int(value))
            missed[phase] = missed.get(phase, 0) + 1
    return [
        f"{len(flows)} of {results.flows.num_rows} flows lost their connection "
        f"(the first: {flows[0][0]} at {flows[0][1]:.3g} s of run {flows[0][2]}): {reason}"
        for reason, flows in lost.items()
    ] + [
        f"in {count} of {results.runs.num_rows} runs, {flow} never began visit {visit} to the phase {phase}, "
        "so the changes that wait for it did not happen"
        for (flow, phase, visit), count in missed.items()
    ]
