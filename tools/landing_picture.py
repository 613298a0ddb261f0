"""Draws the README's picture: CPU times of Narrows and ns-3, and their errors in goodput against Linux.

    python tools/landing_picture.py

The figures come from the measured tables in docs/explanation/performance.md and validation.md.
tests/python/test_landing.py fails if the picture does not agree with them.
"""

import re
import sys
from pathlib import Path
from typing import Any

import altair as alt
import vl_convert
from narrows.report import style

ROOT = Path(__file__).resolve().parent.parent
PAGES = ROOT / "docs/explanation"
PICTURE = PAGES / "img/landing.svg"
OURS, OTHER = "Narrows", "ns-3"
SCENARIOS = {
    "A": "2 CUBIC flows, 100 Mbit/s",
    "B": "2 BBR flows, 100 Mbit/s",
    "C": "100 CUBIC flows, 1 Gbit/s",
    "D": "2000 short flows/s for 10 s",
    "H": "2000 short flows/s for 30 s",
    "E": "UDP at 10 Gbit/s, 5 hops",
}
"""The scenarios that both simulators ran, by their letters in the table."""


def speeds() -> list[dict[str, Any]]:
    """CPU seconds for each scenario and simulator."""
    text = (PAGES / "performance.md").read_text(encoding="utf-8")
    pair = r"^\| ([A-Z]) \| narrows \| +([\d.]+) .*\n\|   \| ns-3    \| +([\d.]+) "
    rows = re.findall(pair, text, re.MULTILINE)
    # Only the first table has CPU times. Later tables use the same letters.
    found: dict[str, tuple[float, float]] = {}
    for letter, ours, other in rows:
        found.setdefault(letter, (float(ours), float(other)))
    if missing := sorted(set(SCENARIOS) - set(found)):
        raise ValueError(f"performance.md has no CPU time of scenario {missing[0]}")
    return [
        {"what": title, "simulator": name, "value": value}
        for letter, title in SCENARIOS.items()
        for name, value in zip((OURS, OTHER), found[letter], strict=True)
    ]


def errors() -> list[dict[str, Any]]:
    """Median errors in goodput by algorithm, in per cent."""
    text = (PAGES / "validation.md").read_text(encoding="utf-8")
    head = next(line for line in text.splitlines() if line.startswith("| algorithm | flows | goodput |"))
    columns = [cell.strip() for cell in head.strip("|").split("|")]
    ours, other = columns.index("goodput"), columns.index("ns-3: goodput")
    rows = []
    for line in text[text.index(head) :].split("\n\n")[0].splitlines()[2:]:
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if not cells[0].startswith("**"):
            rows += [
                {"what": cells[0], "simulator": OURS, "value": float(cells[ours])},
                {"what": cells[0], "simulator": OTHER, "value": float(cells[other])},
            ]
    return rows


def picture() -> str:
    """The picture, as SVG."""
    colours = alt.Scale(domain=[OURS, OTHER], range=[style.look("cubic").light, "#8a8f98"])

    shapes = alt.Scale(domain=[OURS, OTHER], range=["circle", "diamond"])

    def panel(
        rows: list[dict[str, Any]], title: str, axis: str, scale: alt.Scale, ticks: list[float]
    ) -> alt.Chart:
        return (
            alt.Chart(alt.Data(values=rows), title=alt.TitleParams(title, anchor="start"))
            .mark_point(filled=True, size=70, opacity=1)
            .encode(
                x=alt.X("value:Q", title=axis, scale=scale, axis=alt.Axis(values=ticks)),
                y=alt.Y("what:N", title=None, sort=None),
                color=alt.Color("simulator:N", title=None, scale=colours),
                shape=alt.Shape("simulator:N", title=None, scale=shapes),
            )
            .properties(width=260, height=270)
        )

    seconds = alt.Scale(type="log", domain=[0.05, 100])
    speed = panel(speeds(), "CPU time of a simulation", "seconds (log scale)", seconds, [0.1, 1, 10, 100])
    error = panel(
        errors(),
        "Error in goodput, compared with Linux 6.1",
        "per cent (median)",
        alt.Scale(domain=[0, 100]),
        [0, 25, 50, 75, 100],
    )
    chart = (
        alt.hconcat(speed, error)
        .configure(background="white", font="sans-serif")
        .configure_legend(orient="top", labelFontSize=13, symbolSize=90)
        .configure_view(stroke=None)
        .configure_axis(labelFontSize=11, titleFontWeight="normal", labelLimit=220)
    )
    return str(vl_convert.vegalite_to_svg(chart.to_dict()))


if __name__ == "__main__":
    PICTURE.write_text(picture(), encoding="utf-8")
    sys.stdout.write(f"{PICTURE.relative_to(ROOT)}\n")
