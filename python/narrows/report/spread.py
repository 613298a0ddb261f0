"""Chooses the points of a large sweep that are drawn.

The chosen points show as many levels of the factors as possible.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence


def spread(points: Sequence[Mapping[str, Hashable]], most: int) -> list[int]:
    """The indices of the chosen points, at most `most`, in ascending order.

    The first choices are points with a level of a factor that no chosen point has. If all levels are shown,
    further points are chosen at even distances.
    """
    if len(points) <= most:
        return list(range(len(points)))
    seen: set[tuple[str, Hashable]] = set()
    chosen: list[int] = []
    # Choose the point with the most levels that no chosen point has, so that few points show all levels.
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
