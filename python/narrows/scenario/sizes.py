"""Measured distributions of flow sizes, as simulations of data centres use them.

The original papers print the distributions only as curves. Later papers published points of these curves.
These points are listed below.
"""

from __future__ import annotations

from dataclasses import dataclass


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
    "web-search": Measured(
        (
            (0, 0),
            (10_000, 15),
            (20_000, 20),
            (30_000, 30),
            (50_000, 40),
            (80_000, 53),
            (200_000, 60),
            (1_000_000, 70),
            (2_000_000, 80),
            (5_000_000, 90),
            (10_000_000, 97),
            (30_000_000, 100),
        ),
        "a web search cluster: Alizadeh et al., DCTCP, SIGCOMM 2010, figure 4; points of pFabric and HPCC",
    ),
    "data-mining": Measured(
        (
            (0, 0),
            (180, 10),
            (216, 20),
            (560, 30),
            (900, 40),
            (1_100, 50),
            (1_870, 60),
            (3_160, 70),
            (10_000, 80),
            (400_000, 90),
            (3_160_000, 95),
            (100_000_000, 98),
            (1_000_000_000, 100),
        ),
        "a data mining cluster: Greenberg et al., VL2, SIGCOMM 2009, figure 2; points of pFabric",
    ),
    "hadoop": Measured(
        (
            (0, 0),
            (100, 1),
            (200, 2),
            (300, 5),
            (350, 15),
            (400, 20),
            (500, 30),
            (600, 40),
            (700, 50),
            (1_000, 60),
            (2_000, 67),
            (7_000, 70),
            (30_000, 72),
            (50_000, 82),
            (80_000, 87),
            (120_000, 90),
            (300_000, 95),
            (1_000_000, 97.5),
            (2_000_000, 99),
            (10_000_000, 100),
        ),
        "Facebook's Hadoop cluster: Roy et al., SIGCOMM 2015, figure 6; points of HPCC",
    ),
}
"""The distributions, by the names that they have in scenarios."""
