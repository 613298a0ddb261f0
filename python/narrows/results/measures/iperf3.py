"""Measures of a paper's own experiment on real stacks: iperf3 transfers, and pings.

The measures of iperf3 transfers are means over iperf3's intervals of one second, as in the survey's table.
"""

from __future__ import annotations

import numpy as np

from narrows.results.measures.registry import measure
from narrows.results.runs import INTERVALS, PINGS, Run

_SOURCE = "iperf3, mean over intervals"


def _mean(run: Run, quantity: str) -> float:
    return float(np.mean(run.column(INTERVALS, quantity)))


@measure("Throughput", "Mbit/s", _SOURCE)
def iperf3_throughput(run: Run) -> float:
    """Rate at which iperf3 wrote data into its socket."""
    return _mean(run, "bits_per_second") / 1e6


@measure("Window", "KiB", _SOURCE)
def iperf3_window(run: Run) -> float:
    """Congestion window at the ends of the intervals."""
    return _mean(run, "snd_cwnd") / 1024


@measure("RTT", "\N{MICRO SIGN}s", _SOURCE)
def iperf3_rtt(run: Run) -> float:
    """Linux's smoothed RTT at the ends of the intervals."""
    return _mean(run, "rtt")


@measure("RTT variance", "\N{MICRO SIGN}s", _SOURCE)
def iperf3_rtt_variance(run: Run) -> float:
    """Linux's mean deviation of the RTT at the ends of the intervals, which iperf3 calls variance."""
    return _mean(run, "rttvar")


@measure("MTU", "bytes", _SOURCE)
def iperf3_mtu(run: Run) -> float:
    """Path MTU at the ends of the intervals."""
    return _mean(run, "pmtu")


@measure("Retransmissions", "packets", "iperf3")
def iperf3_retransmits(run: Run) -> float:
    """Number of segments that the sender retransmitted."""
    return float(run.column(INTERVALS, "retransmits").sum())


@measure("Drops of the ports", "packets", "tc")
def tbf_drops(run: Run) -> float:
    """Number of packets that tbf dropped at all ports of hosts and switch."""
    return float(run.column("ports", "drops").sum())


@measure("RTT of pings", "\N{MICRO SIGN}s", "ping")
def ping_rtt(run: Run) -> float:
    """Mean RTT of the pings of all hosts."""
    return float(np.mean(run.column(PINGS, "rtt")))


@measure("Deviation of the RTT of pings, divided by its mean", "", "ping")
def ping_deviation(run: Run) -> float:
    """Standard deviation of the RTTs of the pings of all hosts, divided by their mean."""
    rtts = run.column(PINGS, "rtt")
    return float(np.std(rtts, ddof=1) / np.mean(rtts))


@measure("Failed attempts", "%", "the paper, 3.6")
def ping_failed(run: Run, lost: float = 0.2) -> float:
    """Whether an attempt failed: 100 if so, otherwise 0.

    An attempt fails if the share of pings without a reply is at least `lost` for any host. The mean over
    attempts is what the paper calls the relative value of the error.
    """
    sent, received = run.column("pinging", "sent"), run.column("pinging", "received")
    # Do not compute 1 - received / sent, because 1 - 16 / 20 is below 0.2 in floating point.
    return 100.0 if np.any(sent - received >= lost * sent) else 0.0
