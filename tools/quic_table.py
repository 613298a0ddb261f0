"""Fills the tables of docs/explanation/quic.md: quinn's CUBIC and BBR compared with those of Linux.

    python tools/quic_table.py [--seeds 25]

The networks are the core cells of `narrows validate`. Linux figures come from the recording that ships
with Narrows. All other figures are simulated.
"""

import argparse
import math
import sys
from collections.abc import Collection
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from narrows import _native, markdown, sweep
from narrows.results.results import Results
from narrows.scenario.load import loads
from narrows.validate import grid
from narrows.validate.measures import Side, sides
from narrows.validate.place import Place
from narrows.validate.recording import Recording
from pages import fill

PAGE = Path(__file__).resolve().parent.parent / "docs" / "explanation" / "quic.md"
DURATION = "15s"
ALGORITHMS = ("cubic", "bbr")


@dataclass(frozen=True)
class Variant:
    """A kind of sender for the tested flows."""

    title: str
    transport: str
    prefix: str = ""


VARIANTS = (
    Variant("TCP", "tcp"),
    Variant("quinn", "quinn"),
    Variant("our controller in quinn", "quinn", "narrows:"),
)
FIGURES = {
    "goodput_bps": ("goodput, Mbit/s", 1e6, 1),
    "rtt_mean_s": ("mean RTT, ms", 1e-3, 1),
    "resent": ("lost or sent again, %", 1e-2, 2),
}
"""The title, the unit and the number of decimals of each figure."""

LOST = "lost"
"""Key of the number of runs in which the connection was lost. The medians leave out these runs."""

Values = dict[str, float]
"""Median of each figure over the runs of a cell, for the tested flow (`near`)."""


def simulated(work: tuple[grid.Cell, str, Variant, int]) -> Values:
    """Simulates a cell with these senders, and returns its figures."""
    cell, algorithm, variant, seeds = work
    overrides: dict[str, object] = {}
    if variant.transport != "tcp":
        for name in cell.tested:
            overrides |= {
                f"flows.{name}.transport": variant.transport,
                f"flows.{name}.cc": f"{variant.prefix}{algorithm}",
            }
    text = grid.scenario(cell, algorithm, DURATION)
    results = sweep.run(loads(text, overrides=overrides), seeds=seeds, jobs=1)
    return _medians(sides(results)["near"], _lost(results))


def _lost(results: Results) -> set[int]:
    """The seeds of the runs in which the tested flow lost its connection."""
    seeds = dict(zip(results.runs["run"].to_pylist(), results.runs["seed"].to_pylist(), strict=True))
    return {
        seeds[event["run"]]
        for event in results.events.to_pylist()
        if event["entity"] == "near" and event["kind"].startswith(_native.CONNECTION_LOST)
    }


def _medians(side: Side, lost: Collection[int] = ()) -> Values:
    kept = side.of(set(side.seeds) - set(lost))
    return {LOST: len(lost), **{figure: kept.median(figure) for figure in FIGURES}}


def _text(values: Values | None, figure: str, unit: float, digits: int) -> str:
    """A figure as text: `-` without runs, `lost` if all connections were lost."""
    if values is None:
        return "-"
    if math.isnan(values["goodput_bps"]):
        return "lost"
    some_lost = f" ({values[LOST]:.0f} lost)" if values[LOST] and figure == "goodput_bps" else ""
    return f"{values[figure] / unit:.{digits}f}{some_lost}"


def table(algorithm: str, seeds: int) -> str:
    """The table of one algorithm, with the values of Linux and of each variant."""
    cells, recording = grid.core(), Recording()
    work = [(cell, algorithm, variant, seeds) for cell in cells for variant in VARIANTS]
    with ProcessPoolExecutor(2) as pool:
        found = dict(
            zip([(cell, variant) for cell, _, variant, _ in work], pool.map(simulated, work), strict=True)
        )
    rows = []
    for cell in cells:
        evidence = recording.evidence(Place(Path(), algorithm, cell, DURATION))
        linux = None if evidence is None or not evidence.sides else _medians(evidence.sides["near"])
        row = [f"`{cell.name}`"]
        for figure, (_, unit, digits) in FIGURES.items():
            values = [linux, *(found[cell, variant] for variant in VARIANTS)]
            row.append(" / ".join(_text(value, figure, unit, digits) for value in values))
        rows.append(row)
    return markdown.table(["cell", *(title for title, _, _ in FIGURES.values())], rows, "lr")


def _main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=25)
    options = parser.parse_args()
    text = PAGE.read_text(encoding="utf-8")
    for algorithm in ALGORITHMS:
        text = fill(text, algorithm, table(algorithm, options.seeds))
    PAGE.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    sys.exit(_main())
