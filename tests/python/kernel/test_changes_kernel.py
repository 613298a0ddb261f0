"""Applications and links that change during a run on real stacks."""

from __future__ import annotations

import pytest
from narrows import sweep
from narrows.scenario.load import loads

CHANGES = """
name = "changes"
duration = "5s"
warmup = "0s"
[topology]
kind = "dumbbell"
rate = "20mbit"
rtt = "20ms"
at = [{ time = "3s", jitter = "40ms" }]
[[flows]]
name = "flow"
app = { rate = "8mbit", at = [{ time = "1s", rate = "0mbit" }, { time = "3s", rate = "4mbit" }] }
[probes]
interval = "100ms"
"""
PRODUCED_BYTES = 1_000_000 + 2 * 500_000
"""Data that the application produces: 8 Mbit/s for 1 s, and 4 Mbit/s for 2 s."""


@pytest.mark.usefixtures("real", "tidy")
def test_the_application_and_the_jitter_follow_their_schedules(backend):
    made = sweep.run(loads(CHANGES), backend=backend)
    (flow,) = made.flows.to_pylist()
    # At the end, some data is in flight, or waits for a full segment.
    assert 0.95 * PRODUCED_BYTES < flow["delivered_bytes"] <= PRODUCED_BYTES
    samples = made.table("flow_samples").to_pydict()
    delivered = {
        second: sum(
            bps * 0.1 / 8
            for t, bps in zip(samples["t_s"], samples["goodput_bps"], strict=True)
            if second < t <= second + 1
        )
        for second in (0, 2, 4)
    }
    assert delivered[2] < 20_000, delivered
    assert 400_000 < delivered[4] < 600_000 < delivered[0], delivered
    rtts = dict(zip(samples["t_s"], samples["srtt_s"], strict=True))
    before = [rtt for t, rtt in rtts.items() if 0.5 < t < 1]
    later = [rtt for t, rtt in rtts.items() if 4 < t < 5]
    # The jitter adds 0 to 40 ms, 20 ms on average.
    assert min(later) > max(before) + 0.005, (before, later)
