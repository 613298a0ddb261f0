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

from narrows.topology.facts import Edge, Facts, Group

ACCESS_DELAY = 4_000_000
"""One-way delay of an access link, ns."""
_MBIT = 1_000_000

_ONE = [(50, 167_000), (150, 167_000), (150, 167_000), (100, 167_000)]
_TWO = [
    (50, 13_330_000),
    (100, 6_670_000),
    (50, 3_330_000),
    (150, 3_330_000),
    (150, 3_330_000),
    (50, 6_670_000),
]
"""Capacity (Mbit/s) and delay (ns) of the links R1-R2, R2-R3, ..."""

_GROUPS_ONE = [
    Group("A", "R1", "R4", 3),
    Group("B", "R2", "R5", 3),
    Group("C", "R3", "R4", 3),
    Group("D", "R1", "R2", 6),
    Group("E", "R4", "R5", 6),
    Group("F", "R2", "R3", 2),
]
_GROUPS_TWO = [
    Group("A1", "R1", "R6", 1),
    Group("A2", "R2", "R6", 1),
    Group("A3", "R3", "R6", 1),
    Group("B1", "R1", "R7", 1),
    Group("B2", "R2", "R7", 1),
    Group("B3", "R4", "R7", 1),
    Group("C", "R5", "R6", 3),
    Group("D", "R1", "R2", 1),
    Group("E", "R2", "R3", 2),
    Group("F", "R3", "R4", 1),
    Group("G", "R6", "R7", 7),
    Group("H", "R4", "R5", 2),
]


def gfc_1() -> Facts:
    """Five switches in a row with 23 flows. The bottlenecks are the links at both ends."""
    return _row("gfc-1", _ONE, _GROUPS_ONE)


def gfc_2() -> Facts:
    """Seven switches in a row with 22 flows. Every link is the bottleneck of some flows."""
    return _row("gfc-2", _TWO, _GROUPS_TWO)


def _row(name: str, links: list[tuple[int, int]], groups: list[Group]) -> Facts:
    nodes = [f"R{i}" for i in range(1, len(links) + 2)]
    edges = [
        Edge(a, b, rate=rate * _MBIT, delay=delay)
        for a, b, (rate, delay) in zip(nodes, nodes[1:], links, strict=False)
    ]
    positions = {node: (float(i), 0.0) for i, node in enumerate(nodes)}
    return Facts(name, nodes, edges, positions, access_delay=ACCESS_DELAY, groups=groups)
