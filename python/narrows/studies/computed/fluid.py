"""The fluid model of BBR flows with different RTTs, equations 6 to 11 of the paper on BBR-A, -B and -C.

The paper (Sensors 23(9):4431, 2023) gives these equations for flow i, whose propagation RTT is p_i. The flows
share a link with the rate C and the queue length q:

    T_i(t) = q(t)/C + p_i                                    (7)
    B_i(t) = g_i p_i B_i(t - 8 p_i) / T_i(t)                 (10, from 6, 8 and 9), g_i = 1.25 for BBR
    omega_i = T_i / T_max,i                                  (11), with g_i = P_up(omega_i) for the variants
    d_1 + ... + d_n = C                                      (the text above equation 7)

The paper does not solve these equations, but they have exactly one solution. Flow i delivers B_i, and q(t) is
the queue for which the sum of all B_i is C. If the sum of all B_i is below C even with q = 0, the queue is
empty and the link is not full. Equation 10 refers to the time 8 p_i earlier. The solution on a grid of times
is therefore exact if every 8 p_i is a multiple of the step. In this case, a smaller step gives the same
values at the same times. No solver of differential equations is needed.

Two points are our interpretation. First, the gain of a period follows from omega at the start of the period,
8 p_i earlier, because the controller has no later RTT sample (GAIN-4). Second, before t = 0 the queue is
empty and the estimates are constant.

The model has no ProbeRTT, no phase with the down gain, and no congestion window. If the gain of a flow is
1.25, the flow therefore always has 1.25 p_i B_i in flight.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from narrows.studies.computed.gains import Gain

Floats = NDArray[np.float64]

PERIOD = 8
"""Number of propagation RTTs between two estimates of the bandwidth. ProbeBW's cycle has eight phases of one
RTT."""
_EXACT = 1e-9
"""Tolerance (in steps) of the check that a period is a whole number of steps."""
_MOST_STEPS = 100
"""Maximum number of steps of Newton's method, which needs fewer than ten."""


@dataclass(frozen=True)
class FluidFlow:
    """A flow of the model."""

    rtprop_s: float
    longest_rtt_s: float
    """T_max of equation 11."""
    share: float
    """Estimated bandwidth before t = 0, as a fraction of the link's rate."""
    up: Gain


@dataclass(frozen=True)
class Solution:
    """A solution of the model. Rows are times, columns are flows."""

    t_s: Floats
    share: Floats
    """Delivered rate as a fraction of the link's rate. This is also the new estimate of the bandwidth."""
    gain: Floats
    """Pacing gain g of the period that ends at this time."""
    effective_gain: Floats
    """The new bandwidth estimate divided by the previous estimate: g p / T."""
    queueing_s: Floats
    """Queueing delay q/C, one value for each time."""


def solve(flows: Sequence[FluidFlow], duration_s: float, step_s: float) -> Solution:
    """Solve the model on a grid of times.

    Args:
        flows: the flows.
        duration_s: time of the last point of the grid.
        step_s: time between two points. It must divide 8 times the RTprop of every flow.
    """
    delays = [_steps(PERIOD * flow.rtprop_s, step_s) for flow in flows]
    count = round(duration_s / step_s)
    rtprops = np.array([flow.rtprop_s for flow in flows])
    longest = np.array([flow.longest_rtt_s for flow in flows])
    # Row 0 of `share` and `queueing` is the state before t = 0.
    share = np.empty((count + 1, len(flows)))
    share[0] = [flow.share for flow in flows]
    queueing = np.zeros(count + 1)
    gain, effective = np.empty((count, len(flows))), np.empty((count, len(flows)))
    for k in range(1, count + 1):
        before = [max(0, k - delay) for delay in delays]
        omega = np.minimum(1.0, (rtprops + queueing[before]) / longest)
        gain[k - 1] = [flow.up(float(w)) for flow, w in zip(flows, omega, strict=True)]
        old = np.array([share[row, i] for i, row in enumerate(before)])
        in_flight = gain[k - 1] * rtprops * old
        queueing[k] = queueing_delay(in_flight, rtprops)
        effective[k - 1] = gain[k - 1] * rtprops / (rtprops + queueing[k])
        share[k] = effective[k - 1] * old
    return Solution(
        np.arange(1, count + 1, dtype=np.float64) * step_s, share[1:], gain, effective, queueing[1:]
    )


def queueing_delay(in_flight_s: Floats, rtprops_s: Floats) -> float:
    """The queueing delay at which the sum of all rates in_flight / (p + delay) is the link's rate.

    Args:
        in_flight_s: data in flight of each flow, in seconds: the time that the link needs to send the data.
        rtprops_s: propagation RTT of each flow.

    Returns:
        The delay in seconds. It is 0 if the flows together do not fill the link.
    """
    delay = 0.0
    # The sum of the rates is a convex function of the delay and falls as the delay grows. Newton's method
    # starts below the root, so all its steps stay below the root and approach it.
    for _ in range(_MOST_STEPS):
        rates = in_flight_s / (rtprops_s + delay)
        excess = float(rates.sum()) - 1.0
        step = excess / float((rates / (rtprops_s + delay)).sum()) if excess > 0 else 0.0
        if delay + step == delay:
            break
        delay += step
    return delay


def _steps(period_s: float, step_s: float) -> int:
    steps = period_s / step_s
    if steps < 1 - _EXACT or not math.isclose(steps, round(steps), abs_tol=_EXACT):
        raise ValueError(f"found a step of {step_s:g} s, expected a divisor of {period_s:g} s")
    return round(steps)
