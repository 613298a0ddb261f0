"""Converts solutions of the fluid model to runs.

The runs have the same tables as a simulation, so figures and measures can use them in the same way.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

from narrows.packets import FULL_PACKET, PAYLOAD
from narrows.results.measures import measure
from narrows.results.runs import COMPUTED, Run, Tables
from narrows.studies.computed.fluid import FluidFlow, Solution, solve
from narrows.studies.computed.gains import gains_of

LONGEST_QUEUE = "longest_queue_ms"
"""Name of a factor: the longest queueing delay that the flows have measured (T_max minus RTprop)."""


def gain_fluid(
    algorithms: Sequence[str],
    capacity_mbit: float,
    rtprops_s: Mapping[str, float],
    longest_queues_ms: Sequence[float],
    duration_s: float,
    step_s: float,
) -> list[Run]:
    """Return a run per algorithm and longest queue. All flows of a run begin with equal estimates.

    Args:
        algorithms: names of the gains.
        capacity_mbit: rate of the link, L3.
        rtprops_s: propagation RTT of each flow, by name.
        longest_queues_ms: for each run of an algorithm, the longest queueing delay that the flows have
            measured.
        duration_s: length of a run.
        step_s: time between samples. It must divide 8 times each propagation RTT.
    """
    runs = []
    for name in algorithms:
        up = gains_of(name).up
        for queue_ms in longest_queues_ms:
            flows = [
                FluidFlow(rtprop, rtprop + queue_ms / 1e3, 1 / len(rtprops_s), up)
                for rtprop in rtprops_s.values()
            ]
            solution = solve(flows, duration_s, step_s)
            tables = _tables(name, capacity_mbit * 1e6, rtprops_s, solution)
            runs.append(Run({"algorithm": name, LONGEST_QUEUE: float(queue_ms)}, 0, tables))
    return runs


def _tables(name: str, capacity_bps: float, rtprops_s: Mapping[str, float], solution: Solution) -> Tables:
    """The tables of a run: flows and links, their samples, and the gains at the end."""
    count, times = len(rtprops_s), len(solution.t_s)
    goodput = solution.share * capacity_bps * PAYLOAD
    rtprops = np.array(list(rtprops_s.values()))
    rtts = rtprops + solution.queueing_s[:, None]
    measured = solution.t_s > solution.t_s[-1] / 10  # leave out the start
    number = np.arange(count)
    queue_bytes = solution.queueing_s * capacity_bps / 8
    carried = solution.share.sum(axis=1) * capacity_bps
    return {
        "flows": {
            "flow": number,
            "name": list(rtprops_s),
            "source": list(rtprops_s),
            "cc": [name] * count,
            "start_s": np.zeros(count),
            "end_s": np.full(count, math.nan),
            "goodput_bps": goodput[measured].mean(axis=0),
            "rtt_empty_s": rtprops,
            "rtt_mean_s": rtts[measured].mean(axis=0),
        },
        "flow_samples": {
            "t_s": np.repeat(solution.t_s, count),
            "flow": np.tile(number, times),
            "goodput_bps": goodput.ravel(),
            "rtt_s": rtts.ravel(),
        },
        "links": {
            "link": np.zeros(1),
            "name": ["tight"],
            "capacity_bps": np.array([capacity_bps]),
            "throughput_bps": np.array([carried[measured].mean()]),
        },
        "link_samples": {
            "t_s": solution.t_s,
            "link": np.zeros(times),
            "throughput_bps": carried,
            "queue_bytes": queue_bytes,
            "queue_packets": queue_bytes / FULL_PACKET,
        },
        COMPUTED: {"flow": number, "gain": solution.gain[-1], "effective_gain": solution.effective_gain[-1]},
    }


@measure("Pacing gain at the end", "", "GAIN-8")
def gain_at_end(run: Run, of: str = "*", effective: bool = False) -> float:
    """Mean pacing gain of flows of the model at the end of the run.

    The effective gain is the gain divided by T / p, the RTT relative to the propagation RTT. It equals the
    new bandwidth estimate divided by the previous estimate.
    """
    if COMPUTED not in run.tables:
        return math.nan  # a simulation does not record its gains
    column = run.column(COMPUTED, "effective_gain" if effective else "gain")
    return float(column[run.flows(of)].mean())
