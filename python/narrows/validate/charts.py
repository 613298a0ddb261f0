"""Figures of a validation: errors as a map and as boxes, and real and simulated windows over time."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import altair as alt

from narrows.report import folder
from narrows.report.encode import axis, colour, dash
from narrows.report.figure import Figure, Key, Panel, inline
from narrows.report.series import rows, thin
from narrows.report.shade import Ramp
from narrows.report.style import INK, Look, look, neutral, order
from narrows.results.figures import SAMPLED
from narrows.validate import judge
from narrows.validate.runner import Finding

TITLES = {
    figure: f"{title[0].upper()}{title[1:]}" for figure in judge.TARGETS if (title := judge.TITLES[figure])
}
_FULL = judge.WORST_CELL
"""The map shows this error, and all larger errors, in its strongest colour."""
_ERRORS = Ramp(-_FULL, 0.0, _FULL, ("#2b6cb0", "#ffffff", "#c05621"))
_MOST_PANELS = 18
"""Maximum number of panels for an algorithm's windows."""
_FIRST_SECONDS = 8.0
_SMALL = 130
"""Height of the page's panels."""
_SIMULATED = Look("simulated", "#c05621", "#f6ad55")


def write(findings: Sequence[Finding], out: Path) -> None:
    """Draw and write all figures with their index."""
    drawn = [errors_map(findings), boxes(findings), *windows(findings)]
    folder.replace([(figure, "") for figure in drawn], out, "validate")


def errors_map(findings: Sequence[Finding]) -> Figure:
    """A map of algorithms by cells. Its colours show the errors."""
    names = order([finding.algorithm for finding in findings])
    labels = list(dict.fromkeys(_label(finding) for finding in findings))
    panels = []
    for figure, title in TITLES.items():
        values = [
            {
                "c": _label(f),
                "a": look(f.algorithm).label,
                "f": _ERRORS.fill(e),
                "k": _ERRORS.text(e),
                "t": f"{round(100 * e):+}" if round(100 * e) else "0",
                "beyond": abs(e) > _FULL,
            }
            for f in findings
            if not math.isnan(e := f.errors[figure])
        ]
        base = alt.Chart(inline(values)).encode(
            x=alt.X("a:N", sort=[look(name).label for name in names], title=None),
            y=alt.Y("c:N", sort=labels, title=None, axis=alt.Axis(labelLimit=400)),
        )
        squares = base.mark_rect().encode(color=alt.Color("f:N", scale=None))
        text = base.mark_text(fontSize=9).encode(text="t:N", color=alt.Color("k:N", scale=None))
        # Draw the frame inside the cell. A frame around it would look like the frame of a neighbouring cell.
        inset = alt.RelativeBandSize(0.9), alt.RelativeBandSize(0.8)
        frames = (
            base.transform_filter("datum.beyond")
            .mark_rect(filled=False, strokeWidth=1.2, width=inset[0], height=inset[1])
            .encode(stroke=alt.Stroke("k:N", scale=None))
        )
        panels.append(
            Panel(f"{title}: error (%)", alt.layer(squares, frames, text), height=16 * max(4, len(labels)))
        )
    caption = (
        "Error of the simulator, (simulated - real) / real, in percent. The strongest colours stand for "
        f"{100 * _FULL:.0f} %. Cells with larger errors have a frame."
    )
    return Figure("errors", "Errors by cell", caption, panels, columns=1)


def boxes(findings: Sequence[Finding]) -> Figure:
    """The spread of an algorithm's errors over its cells."""
    names = order([finding.algorithm for finding in findings])
    looks = [look(name) for name in names]
    panels = []
    for figure, title in TITLES.items():
        values = [
            {"s": f.algorithm, "a": look(f.algorithm).label, "e": e}
            for f in findings
            if not math.isnan(e := f.errors[figure])
        ]
        chart = (
            alt.Chart(inline(values))
            .mark_boxplot(size=14, ticks=True)
            .encode(
                x=alt.X("a:N", sort=[item.label for item in looks], title=None),
                y=alt.Y(**axis("e", f"{title}: error", format="%")),
                color=colour(names, looks),
            )
        )
        panels.append(Panel(title, chart))
    caption = (
        "The spread of each algorithm's errors over its cells. Boxes show quartiles. Whiskers end at "
        "1.5 times the interquartile range."
    )
    return Figure("boxes", "Errors by algorithm", caption, panels, columns=1)


def windows(findings: Sequence[Finding]) -> list[Figure]:
    """The windows of a real and a simulated run per algorithm, cell by cell."""
    found = []
    for name, mine in judge.by_algorithm(findings).items():
        panels = [panel for finding in mine[:_MOST_PANELS] if (panel := _overlay(finding)) is not None]
        if panels:
            keys = [Key("real", neutral(INK)), Key("simulated", look(name))]
            caption = (
                "Windows of the first run of each side over time. Even two runs of the same side are not "
                "synchronised."
            )
            found.append(Figure(f"windows-{name}", f"Windows of {look(name).label}", caption, panels, keys))
    return found


def same_losses(findings: Sequence[Finding]) -> Figure | None:
    """The first seconds of flows that lose the same packets in real and simulated runs.

    One panel per algorithm.

    The figure shows the cell and the seed for which the largest number of algorithms has runs.
    """
    lossy = [f for f in findings if f.cell.same_losses and f.real.seeds]
    if not lossy:
        return None
    (cell, seed), _ = Counter((f.cell, f.real.seeds[0]) for f in lossy).most_common(1)[0]
    chosen = {f.algorithm: f for f in lossy if (f.cell, f.real.seeds[0]) == (cell, seed)}
    panels = [
        panel
        for name in order(list(chosen))
        if (panel := _overlay(chosen[name], _FIRST_SECONDS, look(name).label)) is not None
    ]
    if not panels:
        return None
    caption = (
        f"The flow of {cell.name} with seed {seed} loses the same packets on Linux and in the simulator."
    )
    keys = [Key("real", neutral(INK)), Key("simulated", _SIMULATED)]
    small = [replace(panel, height=_SMALL) for panel in panels]
    return Figure("same-losses", "Windows under the same losses", caption, small, keys, columns=3)


def _overlay(finding: Finding, until: float = math.inf, title: str = "") -> Panel | None:
    sides = (finding.real, finding.model)
    if not all(side.windows and len(side.windows[0][0]) for side in sides):
        return None
    values = []
    for name, side in zip(("real", "simulated"), sides, strict=True):
        t, window = side.windows[0]
        kept = t <= until
        t, window = thin(t[kept], window[kept])
        values += rows(x=t, y=window, s=name)
    looks: list[Look] = [neutral(INK), _SIMULATED if title else look(finding.algorithm)]
    names = ["real", "simulated"]
    chart = (
        alt.Chart(inline(values))
        .mark_line(strokeWidth=1.2)
        .encode(
            x=alt.X(**axis("x", "Time (s)")),
            y=alt.Y(**axis("y", SAMPLED["cwnd"].axis, scale={"zero": True})),
            color=colour(names, looks),
            strokeDash=dash(names, looks),
        )
    )
    return Panel(title or _label(finding), chart)


def _label(finding: Finding) -> str:
    return finding.cell.name + (f" {finding.flow}" if len(finding.cell.tested) > 1 else "")
