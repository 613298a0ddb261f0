"""A matrix as heat maps, one page, and a summary in words."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from narrows.matrix.cells import Cell, table
from narrows.matrix.plan import HELP, MARKED, Ask, pairs
from narrows.metrics.statistics import Interval
from narrows.report import export, page
from narrows.report.figure import Figure
from narrows.report.kinds.heat import FAIR, HARM, SHARE, Scale, Value, heat
from narrows.report.style import look, order
from narrows.results import tables
from narrows.results.results import Results

Say = Callable[[str], None]

STARVING = 0.1
"""Share of the goodput below which the summary names a victim."""

_MAPS: tuple[tuple[str, str, str, Scale], ...] = (
    (
        "share",
        "Share of the goodput, %",
        "Of the row's flow beside the column's. Blue: it takes more than half; brown: less.",
        SHARE,
    ),
    (
        "harm_goodput",
        "Harm to the goodput, %",
        "Part of what the row's flow has alone that it loses beside the column's (Ware et al. 2019). A fair half is "
        "50 %. What a controller does to its own kind is on the diagonal: a newcomer that does more to it than "
        "that is worse for it than it is itself.",
        HARM,
    ),
    (
        "harm_rtt",
        "Harm to the RTT, %",
        "Part of the row's mean RTT that it would not have alone. Below zero: it waits less than when alone.",
        HARM,
    ),
    ("jain", "Jain's index, %", "Of both goodputs; 50 % if one of them has all.", FAIR),
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
    """Write the cells as Parquet and CSV, the page and, with `files`, each heat map as a file."""
    for suffix in tables.FORMATS:
        tables.write(out / f"matrix.{suffix}", table(found))
    drawn = {buffer: maps(found, ask, buffer) for buffer in ask.buffers}
    target = out / "report.html"
    target.write_text(_page(found, results, ask, drawn), encoding="utf-8")
    if files:
        for figure in (figure for group in drawn.values() for figure in group):
            say(f"figure {figure.id}")
            export.write(figure, out / "figures")
    return target


def maps(found: Sequence[Cell], ask: Ask, buffer: str) -> list[Figure]:
    """The heat maps of a buffer."""
    names = order(list(ask.controllers))
    here = [cell for cell in found if cell.buffer == buffer and cell.rival is not None]
    figures = []
    for figure, title, caption, scale in _MAPS:
        values = []
        for cell in here:
            interval: Interval = getattr(cell, figure)
            values.append(
                Value(
                    cell.controller,
                    str(cell.rival),
                    interval.mean,
                    interval.half_width,
                    f"{100 * interval.mean:.0f}",
                )
            )
        identity = f"{figure.replace('_', '-')}-{buffer}"
        figures.append(
            heat(identity, f"{title}, behind {buffer_text(buffer)}", caption, names, values, scale)
        )
    return figures


def buffer_text(buffer: str) -> str:
    """A queue's length in words."""
    return buffer.replace("bdp", " BDP") if buffer.endswith("bdp") else buffer


def _page(found: Sequence[Cell], results: Results, ask: Ask, drawn: dict[str, list[Figure]]) -> str:
    sections = [
        page.Section(
            f"buffer-{buffer}",
            f"Behind {buffer_text(buffer)}",
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
        ("Duration", ask.duration),
        ("Runs", f"{len(results.runs):,}"),
        ("Seeds", f"{ask.seed} to {ask.seed + ask.seeds - 1}"),
    ]
    lead = (
        f"{len(ask.controllers)} congestion controllers, each alone and each beside each, over one bottleneck of "
        f"{ask.rate} with an RTT of {ask.rtt}. Cells are means over {ask.seeds} seeds; intervals are in "
        "`matrix.csv` and under the pointer."
    )
    warmup = float(results.metadata.get("warmup_s", 0.0))
    return page.render(
        page.Page(
            "Every controller beside every other",
            lead,
            "",
            sections,
            notes=notes(ask),
            facts=facts,
            interval=f"The measurement interval leaves out the first {warmup:g} s of a run (the warm-up).",
        )
    )


def notes(ask: Ask) -> list[str]:
    """What a reader must know about the controllers."""
    said = []
    unmarked = [look(name).label for name in ask.controllers if name in MARKED]
    if unmarked and ask.mark is None:
        said.append(f"{' and '.join(unmarked)}: nobody marks here, so that it is Reno.")
    if any(name in HELP for name in ask.controllers):
        absent = len(ask.controllers) * (len(ask.controllers) + 1) // 2 - len(pairs(ask))
        said.append(
            "Controllers that obey the network have its help at the bottleneck, whoever is beside them."
            + (
                f" {absent} pairs need two different rate controllers at one port and are left out."
                if absent
                else ""
            )
        )
    return said


def summary(found: Sequence[Cell], buffer: str) -> list[str]:
    """Who starves whom behind a buffer, and who does the most and the least to its rivals: a few sentences."""
    here = [cell for cell in found if cell.buffer == buffer and cell.rival not in (None, cell.controller)]
    lines = []
    names = order([cell.controller for cell in here])
    for name in names:
        victims = sorted(
            (cell for cell in here if cell.rival == name and cell.share.mean < STARVING),
            key=lambda cell: cell.share.mean,
        )
        if victims:
            listed = ", ".join(f"{look(v.controller).label} {100 * v.share.mean:.1f} %" for v in victims)
            lines.append(f"{look(name).label} leaves less than a tenth to: {listed}.")
    if not lines and names:
        lines.append("Nobody has less than a tenth.")
    if names:
        taken = {name: [cell.harm_goodput.mean for cell in here if cell.rival == name] for name in names}
        harm = {name: sum(values) / len(values) for name, values in taken.items() if values}
        ranked = sorted(harm, key=lambda name: -harm[name])
        most, least = ranked[0], ranked[-1]
        lines.append(
            f"On average over all others {look(most).label} takes the most from a rival ({100 * harm[most]:.0f} % of "
            f"what it has alone), {look(least).label} the least ({100 * harm[least]:.0f} %)."
        )
    return lines
