"""Generates a radio trace that resembles the 5G link of a moving car.

A study uses this trace if the recorded traces are missing.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

STATES_MBIT = (15.0, 80.0, 260.0)
"""Mean rate in each state: at the edge of a cell, in the middle, and close to the base station."""
STAY = 0.985
"""Probability of staying in a state for another step. With steps of 100 ms the mean stay is 6.7 s, as in
recorded drives."""
CORRELATION = 0.92
"""AR(1) coefficient of the rate's logarithm, from one step to the next.

Fading is correlated over about a second.
"""
SPREAD = 0.35
"""Standard deviation of the logarithm of the rate within a state."""
FLOOR_MBIT = 1.0


def radio_trace(seconds: float, *, seed: int, step_s: float = 0.1) -> Iterator[tuple[float, float]]:
    """Time in s and rate in Mbit/s of each step.

    States follow a Markov chain, and the logarithm of the rate follows AR(1).

    The generator is PCG64, whose stream does not change between numpy releases. Rates are rounded to 0.01
    Mbit/s, which hides rounding differences between machines.
    """
    random = np.random.Generator(np.random.PCG64(seed))
    state, fading = 1, 0.0
    for i in range(round(seconds / step_s)):
        if random.random() > STAY:
            state = 1 if state != 1 else (0, 2)[int(random.random() > 0.5)]
        # A sum of uniform variables replaces a normal variable. The values are therefore equal on every
        # machine.
        noise = sum(random.random() for _ in range(12)) - 6.0
        fading = CORRELATION * fading + SPREAD * (1.0 - CORRELATION**2) ** 0.5 * noise
        yield round(i * step_s, 6), round(max(FLOOR_MBIT, STATES_MBIT[state] * float(np.exp(fading))), 2)


def as_csv(seconds: float, *, seed: int) -> str:
    """The trace in the CSV format of scenarios."""
    lines = [
        f"# Synthetic 5G-like capacity, made by narrows.studies.synthetic with seed {seed}",
        "time_s,rate_mbit",
    ]
    lines += [f"{time:g},{rate:g}" for time, rate in radio_trace(seconds, seed=seed)]
    return "\n".join(lines) + "\n"
