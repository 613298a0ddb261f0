"""The curves of the gains over omega (the paper's Figure 4), and measures of their shapes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from narrows.results.measures import measure
from narrows.results.runs import COMPUTED, Run
from narrows.studies.computed.gains import gains_of

_POINTS = 256
"""Number of values of omega: 1/256, 2/256, ... 1."""
_ROUNDING = 1e-12


def gain_curves(algorithms: Sequence[str]) -> list[Run]:
    """Return a run per algorithm, with the columns omega, up and down."""
    omega = np.arange(1, _POINTS + 1) / _POINTS
    runs = []
    for name in algorithms:
        gains = gains_of(name)
        up, down = (np.array([gain(float(w)) for w in omega]) for gain in (gains.up, gains.down))
        runs.append(Run({"algorithm": name}, 0, {COMPUTED: {"omega": omega, "up": up, "down": down}}))
    return runs


@measure("Distance outside the printed range", "", "GAIN-2")
def outside_range(run: Run, up: Sequence[float], down: Sequence[float]) -> float:
    """Largest distance of a gain from the range that the paper prints for it (0: always in the range)."""
    sides = [(run.column(COMPUTED, "up"), up), (run.column(COMPUTED, "down"), down)]
    return max(float(np.max(np.maximum(low - gain, gain - high), initial=0.0)) for gain, (low, high) in sides)


@measure("Steps against the printed trend", "", "GAIN, 4.2.2")
def against_trend(run: Run, gain: str, slope: str) -> float:
    """Number of steps of omega at which a gain contradicts the paper.

    At such a step, the gain rises, or its slope changes in the wrong direction. `slope` is "flatter" if,
    according to the paper, the gain falls more and more slowly as omega grows. Otherwise it is "steeper".
    """
    steps = np.diff(run.column(COMPUTED, gain))
    turn = np.diff(steps) if slope == "flatter" else -np.diff(steps)
    return float((steps > _ROUNDING).sum() + (turn < -_ROUNDING).sum())


@measure("Asymmetry of the two gains", "", "GAIN-2")
def asymmetry(run: Run) -> float:
    """The largest difference between 1 and the mean of up(omega) and down(1 - omega).

    The difference is 0 if the two curves are point reflections of each other.
    """
    up, down = _both(run)
    return float(np.abs((up[:-1] + down[-2::-1]) / 2 - 1).max())


@measure("Imbalance of the two gains", "BDP", "GAIN-7")
def imbalance(run: Run) -> float:
    """The largest difference between 2 and the sum up(omega) + down(omega).

    A phase with the up gain and a phase with the down gain together change the queue by this part of a BDP.
    """
    up, down = _both(run)
    return float(np.abs(up + down - 2).max())


def _both(run: Run) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    return run.column(COMPUTED, "up"), run.column(COMPUTED, "down")
