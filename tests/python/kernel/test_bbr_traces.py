"""The state that Linux's BBR reports, in the table `traces` of runs on this machine's kernel."""

from __future__ import annotations

import itertools
import math

import pytest
from narrows import sweep
from narrows.scenario.load import loads

pytestmark = pytest.mark.usefixtures("real", "tidy")

RATE_BPS = 20e6
STARTUP, DRAIN, PROBE_BW, PROBE_RTT = range(4)
ONE_FLOW = """
duration = "DURATION"
[topology]
kind = "dumbbell"
rate = "20mbit"
rtt = "40ms"
queue = "2bdp"
[[flows]]
name = "flow"
cc = "NAME"
[probes]
interval = "INTERVAL"
traces = TRACES
[kernel]
tool = "TOOL"
"""


def scenario(name="bbr", duration="2s", interval="10ms", traces="true", tool="own"):
    text = ONE_FLOW.replace("NAME", name).replace("DURATION", duration).replace("INTERVAL", interval)
    return loads(text.replace("TRACES", traces).replace("TOOL", tool))


def traced(results, key):
    """Pairs of time and value of a variable of the flow."""
    rows = results.traces.to_pylist()
    assert {row["entity"] for row in rows} == {"flow"}
    return [(row["t_s"], row["value"]) for row in rows if row["key"] == key]


@pytest.mark.flaky(reruns=2)
def test_the_phases_and_estimates_of_linuxs_bbr_are_in_the_results(backend):
    results = sweep.run(scenario(duration="22s", interval="2ms"), backend=backend)
    print(results.soundness["0"]["reasons"] or "sound")
    phases = traced(results, "phase")
    print(f"{len(phases)} samples of the phase in 22 s")
    visits = [(phase, next(group)[0]) for phase, group in itertools.groupby(phases, key=lambda row: row[1])]
    print(", ".join(f"{phase:g} at {t:.3f} s" for phase, t in visits))
    # Short visits to Drain can lie between two samples only if the sampler is late.
    assert [phase for phase, _ in visits[:3]] == [STARTUP, DRAIN, PROBE_BW]
    # A new minimum of the RTT postpones ProbeRTT, which is due 10 s after the last one.
    begin = next(t for phase, t in visits if phase == PROBE_RTT)
    assert 10 <= begin < 21, visits
    following = next(visit for visit in visits if visit[1] > begin)
    assert following[0] == PROBE_BW
    assert 0.2 <= following[1] - begin < 0.5
    later = [8 * bw for t, bw in traced(results, "bw") if 2 < t < 10]
    assert all(0.97 * RATE_BPS < bw < 1.06 * RATE_BPS for bw in later), (min(later), max(later))
    rtts = [rtt for t, rtt in traced(results, "min_rtt") if t > 1]
    assert all(0.04 <= rtt < 0.045 for rtt in rtts), (min(rtts), max(rtts))
    gains = {round(256 * gain) for _, gain in traced(results, "pacing_gain")}
    assert gains == {739, 88, 320, 192, 256}


@pytest.mark.flaky(reruns=2)
def test_the_state_of_an_iperf3_flow_is_read_by_sock_diag(backend):
    results = sweep.run(scenario(tool="iperf3"), backend=backend)
    phases = [phase for _, phase in traced(results, "phase")]
    assert {STARTUP, DRAIN, PROBE_BW} >= set(phases) >= {STARTUP, PROBE_BW}
    assert not any(math.isnan(bw) for _, bw in traced(results, "bw"))


def test_without_traces_and_for_other_controllers_there_are_no_rows(backend):
    for one in (scenario(traces="false"), scenario(name="cubic")):
        assert sweep.run(one, backend=backend).traces.num_rows == 0


@pytest.mark.flaky(reruns=2)
@pytest.mark.usefixtures("agent")
def test_the_phases_of_bbr_v3_in_ebpf_are_in_the_results(backend):
    results = sweep.run(scenario(name="bbr3", duration="9s", interval="2ms"), backend=backend)
    print(results.soundness["0"]["reasons"] or "sound")
    phases = traced(results, "phase")
    visits = [(phase, next(group)[0]) for phase, group in itertools.groupby(phases, key=lambda row: row[1])]
    print(", ".join(f"{phase:g} at {t:.3f} s" for phase, t in visits))
    assert [phase for phase, _ in visits[:3]] == [STARTUP, DRAIN, PROBE_BW]
    begin = next(t for phase, t in visits if phase == PROBE_RTT)
    assert 5 <= begin < 8.5, visits
    # Each step of ProbeBW was seen. Outside of ProbeBW, there is no step.
    steps = [step for _, step in traced(results, "step")]
    assert {step for step in steps if not math.isnan(step)} == {0, 1, 2, 3}
    numbers = [phase for _, phase in phases]
    assert [math.isnan(step) for step in steps] == [number != PROBE_BW for number in numbers]
    later = [8 * bw for t, bw in traced(results, "max_bw") if 2 < t < 5]
    assert all(0.97 * RATE_BPS < bw < 1.06 * RATE_BPS for bw in later), (min(later), max(later))
    rounds = [number for _, number in traced(results, "round")]
    assert rounds == sorted(rounds) and rounds[-1] > 50
