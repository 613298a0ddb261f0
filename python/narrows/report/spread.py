"""Chooses points of a large sweep to draw. The choice shows as many levels of the factors as possible."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence


def spread(points: Sequence[Mapping[str, Hashable]], most: int) -> list[int]:
    """Positions of at most `most` points, in order.

    Points that show a level of a factor for the first time come first. The other points are taken at even
    distances.
    """
    if len(points) <= most:
        return list(range(len(points)))
    seen: set[tuple[str, Hashable]] = set()
    chosen: list[int] = []
    # The point with the most new levels comes next, so that few points show all of them.
    while len(chosen) < most:
        new = [len(set(point.items()) - seen) for point in points]
        best = max(range(len(points)), key=new.__getitem__)
        if new[best] == 0:
            break
        chosen.append(best)
        seen |= set(points[best].items())
    rest = [i for i in range(len(points)) if i not in set(chosen)]
    free = most - len(chosen)
    chosen += [rest[k * len(rest) // free] for k in range(free)]
    return sorted(chosen)
