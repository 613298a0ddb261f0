"""A fat tree of equal switches (Al-Fares, Loukissas and Vahdat, SIGCOMM 2008, section 3)."""

from __future__ import annotations

from narrows.topology.facts import Edge, Facts

LINK_DELAY = 1_000
"""Propagation delay of each link, ns: 200 m of fibre."""


def fat_tree(k: int) -> Facts:
    """A tree with (k/2)^2 core switches, k^3/4 hosts, and k pods of k/2 edge and k/2 aggregation switches.

    Core switches are named c1, c2, ... and hosts h1, h2, ... In the names a1.2 (aggregation) and e1.2 (edge),
    1 is the pod, and 2 is the place in the pod. Flow i goes from host i to a host in the other half of the
    tree, so that all flows cross the core.
    """
    half = k // 2
    edges: list[Edge] = []
    positions: dict[str, tuple[float, float]] = {}
    width = float(half * half * k)
    cores = [f"c{i + 1}" for i in range(half * half)]
    for i, core in enumerate(cores):
        positions[core] = ((i + 0.5) * width / len(cores), 3.0)
    hosts: list[str] = []
    for pod in range(1, k + 1):
        aggregation = [f"a{pod}.{i + 1}" for i in range(half)]
        for i, switch in enumerate(aggregation):
            positions[switch] = (((pod - 1) * half + i + 0.5) * half, 2.0)
            edges += [Edge(core, switch, delay=LINK_DELAY) for core in cores[i * half : (i + 1) * half]]
        for i in range(half):
            edge = f"e{pod}.{i + 1}"
            positions[edge] = (((pod - 1) * half + i + 0.5) * half, 1.0)
            edges += [Edge(switch, edge, delay=LINK_DELAY) for switch in aggregation]
            for _ in range(half):
                hosts.append(f"h{len(hosts) + 1}")
                positions[hosts[-1]] = (len(hosts) - 0.5, 0.0)
                edges.append(Edge(edge, hosts[-1], delay=LINK_DELAY))
    middle = len(hosts) // 2
    pairs = [(host, hosts[(i + middle) % len(hosts)]) for i, host in enumerate(hosts)]
    return Facts("fat-tree", list(positions), edges, positions, hosts=frozenset(hosts), endpoints=pairs)
