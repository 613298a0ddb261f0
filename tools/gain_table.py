"""Fills the tables of docs/explanation/bbr-gain.md from the results of `narrows study bbr-gain`.

narrows study bbr-gain --out results/bbr-gain && python tools/gain_table.py results/bbr-gain
"""

import sys
from collections import defaultdict
from collections.abc import Callable, Iterable
from pathlib import Path
from statistics import fmean
from typing import Any

from narrows import markdown
from narrows.metrics import jain
from narrows.metrics.statistics import mean_ci
from narrows.report.style import look
from narrows.results.results import Results
from pages import fill

PAGE = Path(__file__).resolve().parent.parent / "docs" / "explanation" / "bbr-gain.md"
CC, QUEUE = "flows.*.cc", "links.tight.queue"
SHOWN = ("cubic", "bbr", "bbq", "bbr2", "bbr3", "bbr-a", "bbr-b", "bbr-c")
READINGS = tuple(f"bbr-{kind}-{reading}" for kind in "abc" for reading in ("literal", "recent"))

Row = dict[str, Any]
Point = tuple[Any, ...]


class Runs:
    """Runs of an experiment, grouped by factors."""

    def __init__(self, results: Results, factors: Iterable[str]) -> None:
        self.factors = tuple(factors)
        flows = defaultdict(list)
        for row in results.flows.to_pylist():
            flows[row["run"]].append(row)
        lost: dict[int, float] = {}
        for row in results.links.to_pylist():
            if row["name"] == "tight" and row["offered_packets"]:
                lost[row["run"]] = 100 * row["dropped_packets"] / row["offered_packets"]
        self.points: dict[Point, list[tuple[list[Row], float]]] = defaultdict(list)
        for run in results.runs.to_pylist():
            point = tuple(run[factor] for factor in self.factors)
            self.points[point].append((flows[run["run"]], lost.get(run["run"], 0.0)))

    def levels(self, factor: str) -> list[Any]:
        """The values of a factor, in the order of the sweep."""
        place = self.factors.index(factor)
        return list(dict.fromkeys(point[place] for point in self.points))

    def goodputs(self, point: Point, name: str) -> float:
        """Sum of the goodputs of a group's flows in Mbit/s, averaged over the seeds."""
        return fmean(sum(_rates(flows, name)) for flows, _ in self.points[point])

    def jain(self, point: Point) -> str:
        """Jain's index as text: the mean over seeds with the half width of its 95 % interval."""
        found = mean_ci([jain([row["goodput_bps"] for row in flows]) for flows, _ in self.points[point]])
        return f"{found.mean:.3f} \N{PLUS-MINUS SIGN} {found.half_width:.3f}"

    def index(self, point: Point) -> float:
        """Jain's index, averaged over the seeds."""
        return fmean(jain([row["goodput_bps"] for row in flows]) for flows, _ in self.points[point])

    def rtt(self, point: Point) -> float:
        """Mean RTT over flows and seeds, in ms."""
        return 1e3 * fmean(row["rtt_mean_s"] for flows, _ in self.points[point] for row in flows)

    def dropped(self, point: Point) -> float:
        """Packets dropped at the bottleneck in percent of its arrivals, averaged over the seeds."""
        return fmean(lost for _, lost in self.points[point])


def _rates(flows: list[Row], group: str) -> list[float]:
    return [row["goodput_bps"] / 1e6 for row in flows if row["source"] == group or row["name"] == group]


def _table(head: list[str], rows: list[list[str]]) -> str:
    return markdown.table(head, rows, "lr")


def _labels() -> list[str]:
    return [look(cc).label for cc in SHOWN]


def two_paths(results: Results) -> str:
    """The table of experiment G1, including other interpretations of the paper's gains."""
    runs = Runs(results, [CC])
    rows = []
    for cc in (*SHOWN, *READINGS):
        near, far = runs.goodputs((cc,), "near"), runs.goodputs((cc,), "far")
        ratio = max(near, far) / min(near, far)
        name = look(cc).label if cc in SHOWN else f"`{cc}`"
        rows.append([name, f"{near:.1f}", f"{far:.1f}", f"{ratio:.1f}", runs.jain((cc,))])
    return _table(["5 BDP", "10 ms, Mbit/s", "50 ms, Mbit/s", "times", "Jain's index"], rows)


def buffers(results: Results) -> str:
    """The table of experiment G2 or G7.

    Each cell has the goodputs of the near and of the far flows, and Jain's index.
    """
    runs = Runs(results, [QUEUE, CC])

    def cell(point: Point) -> str:
        return (
            f"{runs.goodputs(point, 'near'):.0f} / {runs.goodputs(point, 'far'):.0f}, {runs.index(point):.2f}"
        )

    rows = [[_buffer(queue), *(cell((queue, cc)) for cc in SHOWN)] for queue in runs.levels(QUEUE)]
    return _table(["buffer", *_labels()], rows)


def ratios(results: Results) -> str:
    """The table of experiment G3: Jain's index for each value of the longer RTT."""
    return _indices(results, "links.1.delay", "buffer, longer RTT", str)


def lan(results: Results) -> str:
    """The table of experiment G5: Jain's index for each number of flows. Each path has half of the flows."""
    return _indices(results, "flows.*.count", "buffer, flows", lambda each: str(2 * int(each)))


def _indices(results: Results, factor: str, head: str, shown: Callable[[Any], str]) -> str:
    """Jain's index for each buffer and each value of a factor."""
    runs = Runs(results, [QUEUE, factor, CC])
    rows = [
        [f"{_buffer(queue)}, {shown(level)}", *(f"{runs.index((queue, level, cc)):.2f}" for cc in SHOWN)]
        for queue in runs.levels(QUEUE)
        for level in runs.levels(factor)
    ]
    return _table([head, *_labels()], rows)


def delay(results: Results) -> str:
    """The table of experiment G4: RTT and drops of two flows."""
    runs = Runs(results, [QUEUE, "flows.f.count", CC])

    def cell(point: Point) -> str:
        return f"{runs.rtt(point):.1f} ms, {runs.dropped(point):.2f} %"

    rows = [[_buffer(queue), *(cell((queue, 2, cc)) for cc in SHOWN)] for queue in runs.levels(QUEUE)]
    return _table(["buffer", *_labels()], rows)


def alone(results: Results) -> str:
    """The table of experiment G6."""
    runs = Runs(results, [CC])
    rows = []
    for cc in SHOWN:
        goodput = fmean(sum(row["goodput_bps"] for row in flows) for flows, _ in runs.points[(cc,)]) / 1e6
        rows.append([look(cc).label, f"{goodput:.0f}", f"{runs.rtt((cc,)):.1f}"])
    return _table(["10 Gbit/s", "goodput, Mbit/s", "mean RTT, ms"], rows)


def _buffer(queue: Any) -> str:
    text = str(queue)
    return text.replace("bdp", " BDP") if text.endswith("bdp") else text


TABLES = {
    "G1": two_paths,
    "G2": buffers,
    "G3": ratios,
    "G4": delay,
    "G5": lan,
    "G6": alone,
    "G7": buffers,
}


def main() -> None:
    """Fills each table of the page for which results exist."""
    text = PAGE.read_text(encoding="utf-8")
    for experiment, table in TABLES.items():
        folder = Path(sys.argv[1]) / "results" / experiment
        if (folder / "runs.parquet").is_file():
            text = fill(text, experiment, f"{table(Results.read(folder))}\n")
    PAGE.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
