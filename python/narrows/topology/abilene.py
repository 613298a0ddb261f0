"""Abilene, the backbone of the United States' research networks until 2007, in two variants.

PAC-30 is SNDlib's variant (Orlowski, Wessäly, Pióro and Tomaszewski, "SNDlib 1.0 - Survivable Network Design
Library", Networks 55(3), 2010; sndlib.put.poznan.pl, network "abilene"). PAC-31 is the Topology Zoo's variant
(Knight et al., "The Internet Topology Zoo", IEEE JSAC 29(9), 2011; 2005-02).
"""

from __future__ import annotations

from narrows.topology.facts import Demand, Edge, Facts

OC_192, OC_48 = 9_920_000_000, 2_480_000_000
"""Capacities of the links in SNDlib, in bit/s."""
ACCESS_DELAY = 930_000
"""One-way delay of an access link in ns. The path from Seattle to New York crosses two access links each way,
and has an RTT of 50 ms (PAC-32)."""
SECOND_ATLANTA = "ATLAM5"
"""The node that the Topology Zoo's variant does not have."""

_POSITIONS = {
    "ATLAM5": (-84.3833, 33.75),
    "ATLAng": (-85.50, 34.50),
    "CHINng": (-87.6167, 41.8333),
    "DNVRng": (-105.00, 40.75),
    "HSTNng": (-95.5174, 29.7700),
    "IPLSng": (-86.1595, 39.7806),
    "KSCYng": (-96.5967, 38.9617),
    "LOSAng": (-118.25, 34.05),
    "NYCMng": (-73.9667, 40.7833),
    "SNVAng": (-122.0255, 37.3858),
    "STTLng": (-122.30, 47.60),
    "WASHng": (-77.0268, 38.8973),
}
_LINKS = [
    ("ATLAM5", "ATLAng", 133),
    ("ATLAng", "HSTNng", 1081),
    ("ATLAng", "IPLSng", 591),
    ("ATLAng", "WASHng", 901),
    ("CHINng", "IPLSng", 260),
    ("CHINng", "NYCMng", 1147),
    ("DNVRng", "KSCYng", 745),
    ("DNVRng", "SNVAng", 1516),
    ("DNVRng", "STTLng", 1573),
    ("HSTNng", "KSCYng", 1028),
    ("HSTNng", "LOSAng", 2196),
    ("IPLSng", "KSCYng", 903),
    ("LOSAng", "SNVAng", 505),
    ("NYCMng", "WASHng", 336),
    ("SNVAng", "STTLng", 1138),
]
"""The two ends of each link, and its length in km."""

# SNDlib's demands, each from the node of its row to the node of its column. Rows and columns have the order
# of _POSITIONS. The sum of the demands is 3 Tbit/s, far more than the links carry, so a scenario scales them
# down.
_DEMANDS = """
0 1140 3128 415 1754 789 630 1016 1149 233 249 5538
2146 0 6142 3360 56067 9094 2429 69016 8783 2174 2604 37150
2770 36737 0 31363 329673 14471 33734 385991 23882 3602 5082 21896
1642 3424 14012 0 7649 7694 4165 7652 6177 22050 6470 10290
832 26089 12913 1454 0 3337 2026 16437 6840 630 1745 15095
1992 8016 27187 10771 14702 0 4841 22366 18695 2094 3580 13342
745 2001 7815 3962 2893 3800 0 2783 3823 1213 1946 4507
1337 44484 424969 6459 161581 11906 2766 0 11969 22906 9684 71197
1076 17991 122327 11677 32998 8773 6894 34167 0 5169 8686 47980
646 955 6961 5128 2883 3338 2006 9589 5447 0 6139 3962
932 41339 24371 7469 7754 29555 13517 36468 12889 26143 0 16178
1982 25503 34597 16062 26779 10055 10130 44119 40069 6207 7930 0
"""


def abilene() -> Facts:
    """Abilene in the variant of SNDlib (PAC-30)."""
    edges = [Edge(a, b, km, OC_48 if (a, b) == ("ATLAng", "IPLSng") else OC_192) for a, b, km in _LINKS]
    names = list(_POSITIONS)
    rows = [[int(value) for value in line.split()] for line in _DEMANDS.split("\n") if line]
    demands = [
        Demand(source, to, mbit)
        for source, row in zip(names, rows, strict=True)
        for to, mbit in zip(names, row, strict=True)
        if mbit
    ]
    return Facts("abilene", names, edges, dict(_POSITIONS), True, access_delay=ACCESS_DELAY, demands=demands)


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
