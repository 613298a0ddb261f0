"""Abilene, the backbone of the United States' research networks until 2007, in two variants.

PAC-30 is SNDlib's variant (Orlowski, Wessäly, Pióro and Tomaszewski, "SNDlib 1.0 - Survivable Network Design
Library", Networks 55(3), 2010; sndlib.put.poznan.pl, network "abilene"). PAC-31 is the Topology Zoo's variant
(Knight et al., "The Internet Topology Zoo", IEEE JSAC 29(9), 2011; 2005-02).
"""

from __future__ import annotations

import json
from pathlib import Path

from narrows.topology.facts import Demand, Edge, Facts

_DATA = json.loads(Path(__file__).with_suffix(".json").read_text(encoding="utf-8"))
"""SNDlib's nodes, links with lengths in km and capacities, and demands. Each demand goes from the node of its
row to the node of its column. The sum of the demands is 3 Tbit/s, far more than the links carry, so a
scenario scales them down. The crate narrows-scenario reads the same file."""
OC_192 = int(_DATA["zoo"]["bit_per_s"])
"""Capacity of all links of the Topology Zoo's variant, and of most links in SNDlib, in bit/s."""
ACCESS_DELAY = int(_DATA["access_delay_ns"])
"""One-way delay of an access link in ns. The path from Seattle to New York crosses two access links each way,
and has an RTT of 50 ms (PAC-32)."""
SECOND_ATLANTA = str(_DATA["zoo"]["without"])
"""The node that the Topology Zoo's variant does not have."""


def abilene() -> Facts:
    """Abilene in the variant of SNDlib (PAC-30)."""
    positions = {node["name"]: (node["longitude"], node["latitude"]) for node in _DATA["nodes"]}
    edges = [Edge(link["a"], link["b"], link["km"], link["bit_per_s"]) for link in _DATA["links"]]
    names = list(positions)
    demands = [
        Demand(source, to, mbit)
        for source, row in zip(names, _DATA["demands_mbit_per_s"], strict=True)
        for to, mbit in zip(names, row, strict=True)
        if mbit
    ]
    return Facts("abilene", names, edges, positions, True, access_delay=ACCESS_DELAY, demands=demands)


def abilene_zoo() -> Facts:
    """The Topology Zoo's variant (PAC-31), without the second node in Atlanta. Every link is an OC-192.

    Names, lengths, and the demands between the remaining nodes come from SNDlib.
    """
    whole = abilene()
    edges = [Edge(e.a, e.b, e.km, OC_192) for e in whole.edges if SECOND_ATLANTA not in (e.a, e.b)]
    positions = {name: at for name, at in whole.positions.items() if name != SECOND_ATLANTA}
    demands = [d for d in whole.demands if SECOND_ATLANTA not in (d.source, d.to)]
    return Facts(
        "abilene-zoo", list(positions), edges, positions, True, access_delay=ACCESS_DELAY, demands=demands
    )
