"""Measures the CPU time of a congestion controller in Python, relative to the same controller in Rust.

Usage: python benches/python_controller.py [RUNS]

Prints the medians of RUNS runs of each controller (default: 5). The runs alternate between the two
controllers. All runs must have the same goodput.
"""

from __future__ import annotations

import statistics
import sys
import time
from typing import Any

import narrows
from narrows.backends.sim import Simulator

SCENARIO = """
duration = "20s"

[topology]
kind = "dumbbell"
rate = "100mbit"
rtt = "40ms"
queue = "1bdp"

[probes]
interval = "0s"

[[flows]]
cc = "{cc}"
"""


class Reno:
    """Slow start and congestion avoidance as in Linux's Reno."""

    def __init__(self) -> None:
        self.count = 0

    def on_ack(self, ack: Any, window: Any) -> None:
        """Grows the window by the acknowledged segments in slow start, and else by one segment per window."""
        if not ack.cwnd_limited:
            return
        if window.cwnd < window.ssthresh:
            window.cwnd += ack.acked
            return
        self.count += ack.acked
        if self.count >= window.cwnd:
            self.count -= window.cwnd
            window.cwnd += 1

    def on_congestion(self, _event: Any, window: Any) -> None:
        """Halves the window."""
        window.ssthresh = max(window.cwnd // 2, 2)


def measure(cc: str) -> tuple[float, float]:
    """CPU seconds of a run, and its goodput in bit/s."""
    scenario = narrows.loads(SCENARIO.format(cc=cc))
    simulator = Simulator({"own": Reno})
    started = time.process_time()
    results = narrows.run(scenario, backend=simulator)
    seconds = time.process_time() - started
    return seconds, results.flows.column("goodput_bps")[0].as_py()


def main() -> None:
    """Print the medians and their ratio."""
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else 5
    measured = [(measure("own"), measure("reno")) for _ in range(runs)]
    if len({goodput for pair in measured for _, goodput in pair}) != 1:
        sys.exit("found different goodputs, expected identical results")
    own, rust = (statistics.median(pair[i][0] for pair in measured) for i in (0, 1))
    print(f"Python {own:.3f} s, Rust {rust:.3f} s of CPU: {own / rust:.2f} times")


if __name__ == "__main__":
    main()
