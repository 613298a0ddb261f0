"""The generic fairness configurations GFC-1 and GFC-2, made for explicit-rate control of ATM's ABR service.

R. J. Simcoe, "Test Configurations for Fairness and Other Tests", ATM Forum/94-0557, July 1994. This document
was not available to us. Capacities, delays and groups come from the description of both configurations in the
documentation of NeST (NITK Surathkal).

For GFC-2 we use the capacities of NeST's description. The usual max-min rates of GFC-2 are A 10, B 5, C 35, D
35, E 35, F 10, G 5 and H 52.5 Mbit/s (quoted from memory). The capacities in this module give all eight
rates. With the capacities that NeST's program sets (50, 150, 150, 100, 100, 100 Mbit/s), the max-min rates
differ from the usual rates.

In this module, access links have a high rate. In NeST, all flows of a group share an access link of 50
Mbit/s, which would be an additional bottleneck.
"""

from __future__ import annotations

import json
from pathlib import Path

from narrows.topology.facts import Edge, Facts, Group

_DATA = json.loads(Path(__file__).with_suffix(".json").read_text(encoding="utf-8"))
"""For each configuration, the links R1-R2, R2-R3, ..., and the groups of flows. The crate narrows-scenario
reads the same file."""
ACCESS_DELAY = int(_DATA["access_delay_ns"])
"""One-way delay of an access link, ns."""
_MBIT = 1_000_000


def gfc_1() -> Facts:
    """Five switches in a row with 23 flows. The bottlenecks are the links at both ends."""
    return _row("gfc-1")


def gfc_2() -> Facts:
    """Seven switches in a row with 22 flows. Every link is the bottleneck of some flows."""
    return _row("gfc-2")


def _row(name: str) -> Facts:
    links = _DATA[name]["links"]
    nodes = [f"R{i}" for i in range(1, len(links) + 2)]
    edges = [
        Edge(a, b, rate=link["mbit_per_s"] * _MBIT, delay=link["delay_ns"])
        for a, b, link in zip(nodes, nodes[1:], links, strict=False)
    ]
    groups = [
        Group(group["name"], group["from"], group["to"], group["count"]) for group in _DATA[name]["groups"]
    ]
    positions = {node: (float(i), 0.0) for i, node in enumerate(nodes)}
    return Facts(name, nodes, edges, positions, access_delay=ACCESS_DELAY, groups=groups)
