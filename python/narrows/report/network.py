"""A picture of a network: nodes at their positions, links with rate, delay and, after a run, loads."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import altair as alt
import vl_convert
from altair.utils.schemapi import debug_mode

from narrows.errors import OutputError, found
from narrows.report.export import PNG_SCALE
from narrows.report.figure import VALIDATE, Figure, Panel, config, inline
from narrows.report.place import place
from narrows.report.style import FAINT, GREY, INK, PAPER
from narrows.report.tables import sentence
from narrows.scenario.resolve import Survey
from narrows.units import spelled_rate

SIDE = 760.0
"""Longer side of the picture in points. The width is at least a fifth of this side, and the height at least a
twelfth of it."""
LOADS = {0.0: FAINT, 0.5: "#5aaee6", 0.8: "#0072b2", 1.0: "#d55e00"}
"""Colours of utilisations, from the palette of Okabe and Ito."""
MOST_LABELS = 60
"""Labels are left out if there are more links than this. Names of switches are left out if there are more
switches than this."""
SIDE_OF_FIGURE = 560.0
"""Longer side of the picture in a report."""
TALLEST = 300.0
"""Largest height of the picture in a report."""
SUFFIXES = (".svg", ".png", ".pdf")
"""Suffixes of the supported file formats."""


@dataclass(frozen=True)
class Node:
    """A node."""

    name: str
    x: float
    y: float
    """Vertical position, increasing upwards."""
    host: bool
    """Whether the node is a host. Hosts are drawn small, and without names if there are many hosts."""


@dataclass(frozen=True)
class Link:
    """A link with the loads of its directions."""

    a: int
    b: int
    label: str
    """Text next to the link."""
    forth: float | None = None
    """Utilisation from a to b, 0 to 1; None without a run."""
    back: float | None = None
    """Utilisation from b to a."""


def parts(seen: Survey, loads: Mapping[str, float] | None = None) -> tuple[list[Node], list[Link]]:
    """Nodes and links of a scenario's network.

    Args:
        seen: the network.
        loads: utilisation by name of the directed link, after a run.
    """
    graph = seen.graph
    index = {node: i for i, node in enumerate(graph.nodes)}
    ends = [(link.source, link.to) for link in graph.links[::2]]
    at = place(len(graph.nodes), ends, {index[node]: at for node, at in graph.positions.items()})
    degree = Counter(end for pair in ends for end in pair)
    nodes = [
        # A published network declares its hosts. In other topologies, a node with one neighbour is a host.
        Node(node, *at[i], host=node in graph.hosts or (degree[i] == 1 and node not in graph.positions))
        for i, node in enumerate(graph.nodes)
    ]
    links = [
        Link(
            forth.source,
            forth.to,
            f"{spelled_rate(forth.rate)}\n{forth.delay / 1e6:.3g} ms",
            loads.get(forth.name) if loads else None,
            loads.get(back.name) if loads else None,
        )
        for forth, back in zip(graph.links[::2], graph.links[1::2], strict=True)
    ]
    return nodes, links


def figure(identity: str, seen: Survey) -> Figure:
    """The network as a figure for a report. In a small network that is not a map, hosts have names, too."""
    nodes, links = parts(seen)
    if len(nodes) <= MOST_LABELS // 2 and not seen.graph.geographic:
        nodes = [replace(node, host=False) for node in _with_long_ends(nodes, links)]
    drawing, shared = layers(nodes, links, seen.graph.geographic, SIDE_OF_FIGURE)
    if drawing.height > TALLEST:
        side = SIDE_OF_FIGURE * TALLEST / drawing.height
        drawing, shared = layers(nodes, links, seen.graph.geographic, side)
    caption = "Nodes and links, with the rate and the one-way delay of each link."
    if shared:
        caption += " " + sentence(shared.replace("between switches", "all links"))
    width, height = (int(extent) for extent in (drawing.width, drawing.height))
    return Figure(identity, "Network", caption, [Panel("", drawing, height=height, width=width)], columns=1)


def _with_long_ends(nodes: list[Node], links: list[Link]) -> list[Node]:
    """Moves each node with one neighbour away from this neighbour.

    This makes the links of these nodes as long as the longest link, so that they have room for labels.
    """
    neighbours: dict[int, list[int]] = {}
    for link in links:
        neighbours.setdefault(link.a, []).append(link.b)
        neighbours.setdefault(link.b, []).append(link.a)
    wanted = max((_distance(nodes[link.a], nodes[link.b]) for link in links), default=0.0)
    moved = list(nodes)
    for i, node in enumerate(nodes):
        if len(near := neighbours.get(i, [])) == 1 and len(neighbours[near[0]]) > 1:
            middle = nodes[near[0]]
            times = wanted / (_distance(node, middle) or wanted)
            moved[i] = replace(
                node, x=middle.x + times * (node.x - middle.x), y=middle.y + times * (node.y - middle.y)
            )
    return moved


def _distance(a: Node, b: Node) -> float:
    return math.hypot(a.x - b.x, a.y - b.y)


def chart(title: str, nodes: list[Node], links: list[Link], geographic: bool) -> dict[str, Any]:
    """The Vega-Lite specification of the picture.

    Args:
        title: title of the picture.
        nodes: nodes with their positions, in degrees or in a plane.
        links: links, whose ends are indices of `nodes`.
        geographic: whether positions are in degrees. If so, a degree of longitude is drawn shorter than a
            degree of latitude, by the cosine of the middle latitude.
    """
    drawing, shared = layers(nodes, links, geographic)
    heading = alt.TitleParams(title, subtitle=shared, subtitleColor=GREY) if shared else title
    look = {key: value for key, value in config().items() if key != "legend"}
    look["legend"] = {"labelColor": GREY, "titleColor": GREY, "titleFontWeight": "normal"}
    with debug_mode(VALIDATE):
        spec: dict[str, Any] = drawing.properties(title=heading).configure(**look).to_dict(validate=VALIDATE)
    return spec | {"background": "white", "padding": 24}


def layers(nodes: list[Node], links: list[Link], geographic: bool, side: float = SIDE) -> tuple[Any, str]:
    """The picture as layers, and a sentence with the labels that all links between switches share."""
    at, width, height = _fit(nodes, geographic, side)
    links, shared = _without_repetition(nodes, links)
    loaded = any(link.forth is not None for link in links)
    wires = [row for link in links for row in _wires(link, at, loaded)]
    x = alt.X("x:Q", axis=None, scale=alt.Scale(domain=[0, width], nice=False, zero=False))
    y = alt.Y("y:Q", axis=None, scale=alt.Scale(domain=[0, height], nice=False, zero=False))
    drawn: list[Any] = []
    if wires:
        rules = alt.Chart(inline(wires)).mark_rule(strokeCap="round").encode(x=x, y=y, x2="x2:Q", y2="y2:Q")
        if loaded:
            scale = alt.Scale(domain=list(LOADS), range=list(LOADS.values()), clamp=True, interpolate="rgb")
            legend = alt.Legend(
                title="utilisation", format=".0%", gradientLength=160, type="gradient", values=list(LOADS)
            )
            size = alt.Scale(domain=[0, 1], range=[1, 7], clamp=True)
            rules = rules.encode(
                color=alt.Color("u:Q", scale=scale, legend=legend),
                strokeWidth=alt.StrokeWidth("u:Q", scale=size, legend=None),
            )
        else:
            rules = rules.encode(color=alt.value(GREY), strokeWidth=alt.value(1.5))
        drawn.append(rules)
    core_links = [link for link in links if not nodes[link.a].host and not nodes[link.b].host]
    if len(core_links) <= MOST_LABELS:
        rows = [_label(link, at) for link in core_links if link.label]
        if rows:
            # Vega centres the first line of a text. With two lines, the text is raised to centre both.
            raise_ = -5 if any("\n" in row["t"] for row in rows) else 0
            base = alt.Chart(inline(rows)).encode(x=x, y=y, text="t:N")
            drawn += _text(base, color=GREY, fontSize=9, lineBreak="\n", baseline="middle", dy=raise_)
    points: list[Any] = []
    for host in (True, False):
        of_kind = [i for i, node in enumerate(nodes) if node.host == host]
        rows = [{"x": at[i][0], "y": at[i][1], "t": nodes[i].name} for i in of_kind]
        if not rows:
            continue
        base = alt.Chart(inline(rows)).encode(x=x, y=y)
        size_ = 25 if host else 90
        points.append(base.mark_point(filled=True, size=size_, color=FAINT if host else INK, opacity=1))
        if not host and len(rows) <= MOST_LABELS:
            drawn += _text(base.encode(text="t:N"), dy=-12, fontSize=11, fontWeight="bold", color=INK)
    return alt.layer(*drawn, *points).properties(width=width, height=height), shared


def _text(base: Any, color: str, **how: Any) -> list[Any]:
    """Text with a white outline, legible on lines."""
    rim = base.mark_text(stroke=PAPER, strokeWidth=3, strokeJoin="round", color=PAPER, **how)
    return [rim, base.mark_text(color=color, **how)]


def _without_repetition(nodes: list[Node], links: list[Link]) -> tuple[list[Link], str]:
    """Remove label lines that all links between switches share, and return them as one sentence."""
    core = [link.label.split("\n") for link in links if not nodes[link.a].host and not nodes[link.b].host]
    if len(core) < 2:
        return links, ""
    common = [line for line in core[0] if all(line in lines for lines in core)]
    kept = ["\n".join(line for line in link.label.split("\n") if line not in common) for link in links]
    relabelled = [
        Link(link.a, link.b, label, link.forth, link.back) for link, label in zip(links, kept, strict=True)
    ]
    return relabelled, f"between switches: {', '.join(common)}" if common else ""


def suffix(path: Path) -> str:
    """The file format that a path's suffix names.

    Raises:
        OutputError: if the format is not supported.
    """
    kind = path.suffix.lower()
    if kind not in SUFFIXES:
        raise OutputError(f"--out: found {found(path.name)}, expected a file in {', '.join(SUFFIXES)}")
    return kind


def write(spec: dict[str, Any], path: Path) -> None:
    """Write the picture in the format of the path's suffix.

    Raises:
        OutputError: if it cannot be written.
    """
    kind = suffix(path)
    svg = vl_convert.vegalite_to_svg(spec)
    if kind == ".svg":
        content = svg.encode()
    elif kind == ".png":
        content = vl_convert.svg_to_png(svg, scale=PNG_SCALE)
    else:
        content = vl_convert.svg_to_pdf(svg)
    try:
        path.write_bytes(content)
    except OSError as error:
        raise OutputError(f"{path}: {error.strerror}") from None


def _fit(nodes: list[Node], geographic: bool, side: float) -> tuple[list[tuple[float, float]], float, float]:
    """Positions in points, and the size of the picture."""
    ys = [node.y for node in nodes]
    narrow = math.cos(math.radians((min(ys) + max(ys)) / 2)) if geographic else 1.0
    xs = [node.x * max(narrow, 0.1) for node in nodes]
    wide, tall = max(xs) - min(xs), max(ys) - min(ys)
    scale = side / (max(wide, tall) or 1.0)
    # If all nodes are in a column, labels need room to the left and right. If all are in a row, labels need
    # room above and below.
    width, height = max(wide * scale, side / 5), max(tall * scale, side / 12)
    left, low = (width - wide * scale) / 2, (height - tall * scale) / 2
    return (
        [((x - min(xs)) * scale + left, (y - min(ys)) * scale + low) for x, y in zip(xs, ys, strict=True)],
        width,
        height,
    )


def _wires(link: Link, at: list[tuple[float, float]], loaded: bool) -> list[dict[str, float]]:
    """A link as one line.

    With loads, the link has two lines: one for each direction, on the right-hand side of that direction.
    """
    (x, y), (x2, y2) = at[link.a], at[link.b]
    if not loaded:
        return [{"x": x, "y": y, "x2": x2, "y2": y2}]
    length = math.hypot(x2 - x, y2 - y) or 1.0
    dx, dy = 3.5 * (y2 - y) / length, 3.5 * (x - x2) / length
    forth = {"x": x + dx, "y": y + dy, "x2": x2 + dx, "y2": y2 + dy, "u": link.forth or 0.0}
    back = {"x": x2 - dx, "y": y2 - dy, "x2": x - dx, "y2": y - dy, "u": link.back or 0.0}
    return [forth, back]


def _label(link: Link, at: list[tuple[float, float]]) -> dict[str, Any]:
    (x, y), (x2, y2) = at[link.a], at[link.b]
    return {"x": (x + x2) / 2, "y": (y + y2) / 2, "t": link.label}
