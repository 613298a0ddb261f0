"""Positions for drawing nodes.

Positions are given, or computed by classical scaling of hop counts (Torgerson 1952). Hosts are placed around
their switch.
"""

from __future__ import annotations

import math
from collections import deque

import numpy as np

Position = tuple[float, float]
"""A position in the plane: x to the right, y upwards."""

HOST_DISTANCE = 0.06
"""Distance of a host from its switch, relative to the picture's longer side."""


def place(count: int, links: list[tuple[int, int]], known: dict[int, Position]) -> list[Position]:
    """A position for each of `count` nodes. The nodes in `known` keep their positions."""
    near: list[set[int]] = [set() for _ in range(count)]
    for a, b in links:
        near[a].add(b)
        near[b].add(a)
    fixed = dict(known) if len(known) > 1 else {}
    rest = [node for node in range(count) if node not in fixed]
    hosts = [node for node in rest if len(near[node]) == 1 and len(near[min(near[node])]) > 1]
    others = [node for node in rest if node not in set(hosts)]
    if others and not fixed:
        fixed.update(_scaled(others, near))
    # In a published network, a node without a position is placed between its neighbours. If the neighbours
    # have no positions either, the node is placed in the middle of all placed nodes.
    for node in others:
        if node not in fixed:
            around = [fixed[other] for other in near[node] if other in fixed] or list(fixed.values())
            fixed[node] = _mean(around)
    _fan(hosts, near, fixed)
    return [fixed[node] for node in range(count)]


def _mean(points: list[Position]) -> Position:
    return (sum(x for x, _ in points) / len(points), sum(y for _, y in points) / len(points))


def _scaled(nodes: list[int], near: list[set[int]]) -> dict[int, Position]:
    """Places nodes in two dimensions so that distances match hop counts as well as possible."""
    if len(nodes) == 1:
        return {nodes[0]: (0.0, 0.0)}
    hops = np.array([_hops(node, nodes, near) for node in nodes], dtype=float)
    squared = hops**2
    centred = -0.5 * (
        squared - squared.mean(axis=0) - squared.mean(axis=1)[:, np.newaxis] + float(squared.mean())
    )
    values, vectors = np.linalg.eigh(centred)
    axes = vectors[:, ::-1][:, :2] * np.sqrt(np.maximum(values[::-1][:2], 0.0))
    # The sign of an eigenvector is arbitrary. The sign is chosen so that the first node is on the left and
    # not below the middle.
    axes *= np.where(axes[0] > 0, [-1.0, 1.0], [1.0, -1.0])
    return {node: (float(x), float(y)) for node, (x, y) in zip(nodes, axes, strict=True)}


def _hops(start: int, nodes: list[int], near: list[set[int]]) -> list[int]:
    far = {start: 0}
    waiting = deque([start])
    while waiting:
        node = waiting.popleft()
        for other in near[node]:
            if other not in far:
                far[other] = far[node] + 1
                waiting.append(other)
    return [far.get(node, len(nodes)) for node in nodes]


def _fan(hosts: list[int], near: list[set[int]], fixed: dict[int, Position]) -> None:
    """Places hosts around their switch, on the side that faces away from the switch's other neighbours."""
    if not hosts:
        return
    xs, ys = [x for x, _ in fixed.values()], [y for _, y in fixed.values()]
    size = max(max(xs) - min(xs), max(ys) - min(ys)) or 1.0
    of_switch: dict[int, list[int]] = {}
    for host in hosts:
        of_switch.setdefault(min(near[host]), []).append(host)
    for switch, own in of_switch.items():
        x, y = fixed[switch]
        away = [(x - fixed[n][0], y - fixed[n][1]) for n in near[switch] if n in fixed]
        dx, dy = _mean(away) if away else (0.0, 0.0)
        middle = math.atan2(dy, dx) if abs(dx) + abs(dy) > 1e-9 * size else -math.pi / 2
        spread = min(2 * math.pi, 0.6 * len(own)) if away else 2 * math.pi
        distance = HOST_DISTANCE * size * max(1.0, len(own) / 10)
        for i, host in enumerate(own):
            angle = middle + spread * ((i + 0.5) / len(own) - 0.5)
            fixed[host] = (x + distance * math.cos(angle), y + distance * math.sin(angle))
