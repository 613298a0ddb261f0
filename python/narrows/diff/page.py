"""The page about a comparison: a forest plot of the differences, and a table of all figures."""

from __future__ import annotations

import math
from typing import Any

import altair as alt

from narrows.diff import words
from narrows.diff.changes import Compared, Diff, Outcome, Part
from narrows.report import page, tables
from narrows.report.encode import axis
from narrows.report.figure import Figure, Key, Panel, inline
from narrows.report.intervals import CUT_WHISKERS
from narrows.report.series import short
from narrows.report.style import GREY, INK, neutral

MOST_DRAWN = 60
"""Largest number of figures in the plot. Changed figures are chosen first. After them, figures with the
smallest p-values are chosen."""
_ROW = 17
"""Height of a row of the plot in pixels."""
_ROOM = 1.3
"""Half of the axis's length, as a multiple of the largest drawn difference."""


def render(diff: Diff) -> str:
    """The page as HTML."""
    drawn = _drawn(diff)
    sections = []
    if drawn:
        sections.append(page.Section("changes", "Differences", "", "", [_forest(diff, drawn)]))
    for i, part in enumerate(diff.parts):
        shown = page.Section(f"figures-{i}", part.name or "All figures", "", "", [], tables=[_table(part)])
        sections.append(shown)
    facts = [
        ("Base", diff.base),
        ("Head", diff.head),
        ("Runs", f"{_runs(diff, 0)} and {_runs(diff, 1)}"),
        ("Confidence", words.percent(diff.confidence)),
    ]
    lead = words.headline(diff)
    warmup = _warmup(diff)
    return page.render(
        page.Page(
            f"{diff.base} and {diff.head}",
            lead[:1].upper() + lead[1:] + ".",
            "",
            sections,
            facts=facts,
            notes=[tables.sentence(note) for note in words.notes(diff)],
            warmup_s=warmup,
        )
    )


def _warmup(diff: Diff) -> float | None:
    """The warm-up time of all runs (None: it is not the same in all scenarios)."""
    known = {part.warmup_s for part in diff.parts}
    return known.pop() if len(known) == 1 else None


def _runs(diff: Diff, side: int) -> int:
    return sum(len((pairing.base, pairing.head)[side]) for pairing in diff.points)


def _drawn(diff: Diff) -> list[tuple[Part, Compared]]:
    """The tested figures that have a relative difference. Figures with the smallest p-values come first."""
    found = [
        (part, item)
        for part in diff.parts
        for item in part.compared
        if not math.isnan(item.p) and not math.isnan(item.relative)
    ]
    found.sort(key=lambda entry: (entry[1].outcome is not Outcome.CHANGED, entry[1].p))
    return found[:MOST_DRAWN]


def _forest(diff: Diff, drawn: list[tuple[Part, Compared]]) -> Figure:
    """The relative differences with their intervals: a row per figure."""
    end = _ROOM * max(abs(100 * item.relative) for _, item in drawn) or 1.0
    data: list[dict[str, Any]] = []
    cut = False
    for part, item in drawn:
        low, high = (100 * bound for bound in item.relative_bounds)
        cut = cut or low < -end or high > end
        data.append(
            {
                "label": ", ".join([*words.place(part, item), words.title(item)]),
                "x": short(100 * item.relative),
                "lo": short(max(low, -end)),
                "hi": short(min(high, end)),
                "interval": words.bounds(item),
                "base": words.mean(item, "base"),
                "head": words.mean(item, "head"),
                "p": words.probability(item),
                "c": INK if item.outcome is Outcome.CHANGED else GREY,
            }
        )
    labels = list(dict.fromkeys(str(row["label"]) for row in data))
    base = alt.Chart(inline(data)).encode(
        y=alt.Y(
            "label:N",
            sort=labels,
            title=None,
            axis=alt.Axis(domain=False, ticks=False, grid=False, labelLimit=380),
        ),
        color=alt.Color("c:N", legend=None, scale=alt.Scale(domain=[INK, GREY], range=[INK, GREY])),
    )
    x = axis("x", "difference in percent of base", domain=[-end, end], grid=True)
    tips = [
        alt.Tooltip("label:N", title=" "),
        alt.Tooltip("base:N", title="base"),
        alt.Tooltip("head:N", title="head"),
        alt.Tooltip("x:Q", title="difference, %"),
        alt.Tooltip("interval:N", title="interval, %"),
        alt.Tooltip("p:N", title="p"),
    ]
    none = alt.Chart(inline([{"zero": 0}])).mark_rule(color=GREY, strokeDash=[3, 3]).encode(x="zero:Q")
    chart = alt.layer(
        none,
        base.mark_rule(strokeWidth=1.6).encode(x=alt.X(**{**x, "shorthand": "lo:Q"}), x2="hi:Q"),
        base.mark_point(filled=True, size=46, opacity=1).encode(x=alt.X(**x), tooltip=tips),
    )
    caption = (
        f"Mean of head minus base, relative to base, with the {words.percent(diff.confidence)} interval of "
        "each single figure. Dark rows have changed after the correction for the number of figures."
    )
    tested = sum(not math.isnan(item.p) for item in diff.compared)
    if tested > len(drawn):
        caption += f" {len(drawn)} of {tested} tested figures are drawn; the tables below have the others."
    return Figure(
        "forest",
        "Differences between base and head",
        caption + (CUT_WHISKERS if cut else ""),
        [Panel("", chart, height=_ROW * len(labels) + 12)],
        [Key("changed", neutral(INK), marks=True), Key("no significant change", neutral(GREY), marks=True)],
        columns=1,
    )


def _table(part: Part) -> tables.Table:
    columns = [
        tables.Column("Flow or link", number=False),
        tables.Column("Figure", number=False),
        tables.Column("Outcome", number=False),
        tables.Column("Base"),
        tables.Column("Head"),
        tables.Column("Change", "%"),
        tables.Column("Interval", "%"),
        tables.Column("Adjusted p"),
    ]
    rows = []
    for item in part.compared[: tables.MOST_ROWS]:
        figure, *numbers, outcome = words.cells(item)
        # The outcome comes before the numbers, because narrow windows cut the last columns.
        texts = (", ".join(words.place(part, item)), figure, outcome, *numbers)
        rows.append([tables.Cell(text) for text in texts])
    notes = []
    if len(part.compared) > len(rows):
        notes.append(f"The first {len(rows):,} of {len(part.compared):,} rows. --json prints all.")
    return tables.Table("Figures", columns, rows, notes)
