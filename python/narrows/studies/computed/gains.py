"""The pacing gains of BBR, BBR-A, BBR-B and BBR-C as functions of omega, in real numbers (GAIN-2).

The functions are equations 12 to 14 of "Optimization of BBR Congestion Control Algorithm Based on Pacing Gain
Model" (Sensors 23(9):4431, 2023). The controllers compute the same functions in integers (`gain_model.rs`,
`bpf/cc/gains.h`). `tools/bbr_gains.py` uses the functions below to compute the values that tests expect from
the integer functions.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from narrows.errors import choice

Gain = Callable[[float], float]
"""A gain as a function of omega. Omega is the RTT divided by the longest RTT, so it is in (0, 1]."""


@dataclass(frozen=True)
class Gains:
    """The gains of the two probing phases of ProbeBW."""

    up: Gain
    down: Gain


def gains_of(name: str) -> Gains:
    """The gains of an algorithm.

    Raises:
        ValueError: for an unknown name.
    """
    if name not in GAINS:
        raise ValueError(choice(name, GAINS))
    return GAINS[name]


GAINS: Mapping[str, Gains] = {
    "bbr": Gains(lambda _: 1.25, lambda _: 0.75),
    "bbr-a": Gains(lambda w: 2 / (w + 1), math.cos),
    # The printed P_down can be read in several ways. Only 3 / (w - 3) + 2 has the printed range.
    "bbr-b": Gains(lambda w: 3 / (w + 2), lambda w: (3 - 2 * w) / (3 - w)),
    "bbr-c": Gains(lambda w: 1.5 - 0.5 * w**0.25, lambda w: 1 - 0.5 * w**4),
}
