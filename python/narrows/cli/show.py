"""The work of `narrows show`: prints a scenario's network as tables, or draws it."""

from __future__ import annotations

import itertools
import math
from pathlib import Path

from narrows import extras, sweep
from narrows.cli.console import plain
from narrows.cli.figures import number
from narrows.cli.options import overrides
from narrows.cli.table import Table
from narrows.errors import OutputError
from narrows.plan import QueuePlan
from narrows.results.results import Results
from narrows.scenario.load import expand, load
from narrows.scenario.resolve import HOST, Survey, survey
from narrows.units import spelled_rate

MOST_ROWS = 200
"""Maximum number of rows in the table of links, and in the table of flows."""


def show(scenario: Path, out: Path | None, results: Path | None, override: list[str]) -> None:
    """Print the tables of a scenario's network, or draw it."""
    if out is not None:
        extras.require("report", "show --out")
    loaded = load(scenario, overrides(override))
    first = expand(loaded, 1)[0].scenario
    seen = survey(first)
    if not any(flow.has_program for flow in first.flows):
        # Make the same checks as `narrows run`. A scenario with programs is not checked, because the
        # simulator refuses programs.
        backend = sweep.simulator()
        sweep.check(expand(first, 1), sweep.Resolver(backend), backend)
    loads = {} if results is None else utilisations(Results.read(results), seen, results)
    if out is not None:
        _draw(loaded.name, seen, loads, out)
        print(f"drawing in {out}")
        return
    console = plain()
    links_table(seen, loads).print(console)
    if (more := len(seen.graph.links) // 2 - MOST_ROWS) > 0:
        console.print(f"... {more} more links")
    flows_table(seen).print(console)
    if (more := len(seen.plan["flows"]) - MOST_ROWS) > 0:
        console.print(f"... {more} more flows")


def utilisations(results: Results, seen: Survey, folder: Path) -> dict[str, float]:
    """Mean utilisation over all runs, by name of the directed link.

    Raises:
        OutputError: if the results are of another network.
    """
    table = results.links
    own = {link.name for link in seen.graph.links}
    if len(table) == 0:
        raise OutputError(f"{folder}: found no table of links, expected results of this scenario")
    values: dict[str, list[float]] = {}
    for row in table.select(["name", "utilisation"]).to_pylist():
        if row["utilisation"] is not None and not math.isnan(row["utilisation"]):
            values.setdefault(row["name"], []).append(row["utilisation"])
    missing = sorted(own - set(table["name"].to_pylist()))
    if missing:
        raise OutputError(f"{folder}: found no link {missing[0]!r}, expected results of this scenario")
    return {name: sum(known) / len(known) for name, known in values.items()}


def links_table(seen: Survey, loads: dict[str, float]) -> Table:
    """A table with a row for each link."""
    table = Table()
    table.add_name("link")
    for heading in ["rate", "delay", "queue"] + (["load forth\n%", "load back\n%"] if loads else []):
        table.add_figure(heading)
    links = seen.graph.links
    for i in range(0, min(len(links), 2 * MOST_ROWS), 2):
        forth, back = links[i], links[i + 1]
        cells = [
            forth.name,
            spelled_rate(forth.rate),
            _millis(forth.delay),
            _queue(seen.plan["links"][i]["queue"]),
        ]
        if loads:
            cells += [number(loads.get(d.name, math.nan), 0.01) for d in (forth, back)]
        table.add_row(*cells)
    return table


def flows_table(seen: Survey) -> Table:
    """A row per flow or group."""
    table = Table()
    for heading in ("flow", "from", "to"):
        table.add_name(heading)
    for heading in ("flows", "RTT", "lowest rate"):
        table.add_figure(heading)
    table.add_text("path")
    graph = seen.graph
    for flow, path in itertools.islice(zip(seen.plan["flows"], seen.paths, strict=True), MOST_ROWS):
        crossed = [graph.links[link] for link in path.forth]
        rtt = sum(graph.links[link].delay for link in path.forth + path.back)
        nodes = [crossed[0].source, *(link.to for link in crossed)]
        names = [graph.nodes[node] for node in nodes]
        table.add_row(
            flow["name"],
            names[0].removesuffix(HOST),
            names[-1].removesuffix(HOST),
            str(flow["count"]),
            _millis(rtt),
            spelled_rate(min(link.rate for link in crossed)),
            " ".join(name for name in names if not name.endswith(HOST)),
        )
    return table


def _millis(nanos: int) -> str:
    return f"{nanos / 1e6:.5g} ms"


def _queue(queue: QueuePlan) -> str:
    if queue["kind"] == "priority" or queue["kind"] == "htb":
        return queue["kind"]
    limit = queue["limit"]
    kind = "" if queue["kind"] == "fifo" else f"{queue['kind']} "
    if limit["packets"] is not None:
        return f"{kind}{limit['packets']} packets"
    length = limit["bytes"]
    return f"{kind}endless" if length is None else f"{kind}{_size(length)}"


def _size(size: int) -> str:
    for factor, unit in ((10**9, "GB"), (10**6, "MB"), (10**3, "kB")):
        if size >= factor:
            return f"{size / factor:.4g} {unit}"
    return f"{size} B"


def _draw(name: str, seen: Survey, loads: dict[str, float], out: Path) -> None:
    from narrows.report import network  # noqa: PLC0415 (charts take a second to load)

    network.suffix(out)
    nodes, links = network.parts(seen, loads)
    network.write(network.chart(name, nodes, links, seen.graph.geographic), out)
