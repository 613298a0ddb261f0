"""Measured distributions of flow sizes, as simulations of data centres use them.

The original papers print the distributions only as curves. Later papers published points of these curves.
`sizes.json` lists these points.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Measured:
    """A measured distribution of flow sizes."""

    points: tuple[tuple[int, float], ...]
    """Sizes in bytes, each with the percentage of flows that are not larger. Between two points, all sizes
    are equally likely."""
    source: str
    """The network where the distribution was measured, and the papers that use these points."""

    @property
    def mean(self) -> float:
        """The mean size, bytes."""
        pairs = zip(self.points, self.points[1:], strict=False)
        return sum((low + high) / 2 * (until - since) / 100 for (low, since), (high, until) in pairs)

    def scaled(self, mean: float | None) -> list[tuple[float, float]]:
        """Sizes in bytes, each with the share of flows (0 to 1) that are not larger.

        Args:
            mean: the mean to which the sizes are scaled (None: sizes are not scaled).
        """
        factor = 1.0 if mean is None else mean / self.mean
        return [(size * factor, percent / 100) for size, percent in self.points]


MEASURED = {
    name: Measured(tuple((size, percent) for size, percent in row["points"]), row["source"])
    for name, row in json.loads(Path(__file__).with_suffix(".json").read_text(encoding="utf-8")).items()
}
"""The distributions, by the names that they have in scenarios. The crate narrows-scenario reads the same
file."""
