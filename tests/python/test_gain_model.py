"""The gain equations of BBR-A, BBR-B and BBR-C, and the solution of the fluid model."""

from __future__ import annotations

import random

import numpy as np
import pytest
from narrows.errors import NarrowsError
from narrows.results.measures import measure_run
from narrows.studies.computed import check, compute
from narrows.studies.computed.curves import gain_curves
from narrows.studies.computed.fluid import FluidFlow, Solution, queueing_delay, solve
from narrows.studies.computed.gains import GAINS
from narrows.studies.model import Computed

VARIANTS = ("bbr-a", "bbr-b", "bbr-c")


def two_flows(algorithm: str = "bbr", *, longest_queue_s: float = 0.25, seconds: float = 30.0) -> Solution:
    """Solves the model for flows with RTTs of 10 and 50 ms. Each flow starts with half of the link."""
    up = GAINS[algorithm].up
    flows = [FluidFlow(p, p + longest_queue_s, 0.5, up) for p in (0.01, 0.05)]
    return solve(flows, seconds, 0.08)


# --- the gains


@pytest.mark.parametrize(
    ("omega", "expected"),
    [  # TV-G1
        (0.05, (1.9048, 0.9988, 1.4634, 0.9831, 1.2636, 1.0000)),
        (0.50, (1.3333, 0.8776, 1.2000, 0.8000, 1.0796, 0.9688)),
        (0.90, (1.0526, 0.6216, 1.0345, 0.5714, 1.0130, 0.6720)),
        (1.00, (1.0000, 0.5403, 1.0000, 0.5000, 1.0000, 0.5000)),
    ],
)
def test_gains_have_the_worked_values(omega: float, expected: tuple[float, ...]) -> None:
    gains = [gain(omega) for name in VARIANTS for gain in (GAINS[name].up, GAINS[name].down)]
    assert gains == pytest.approx(expected, abs=5e-5)


@pytest.mark.parametrize(("name", "omega"), [("bbr-a", 0.6561), ("bbr-b", 0.5), ("bbr-c", 0.5920)])
def test_a_cycle_is_neutral_at_the_worked_omega(name: str, omega: float) -> None:
    """GAIN-7."""
    assert GAINS[name].up(omega) + GAINS[name].down(omega) == pytest.approx(2.0, abs=2e-4)


def test_measures_of_the_curves_find_what_they_look_for() -> None:
    runs = {run.factors["algorithm"]: run for run in gain_curves(["bbr", *VARIANTS])}
    assert measure_run("asymmetry", runs["bbr-b"]).value < 1e-12
    assert measure_run("asymmetry", runs["bbr-c"]).value > 0.05
    inside, outside = ([1.0, 1.5], [0.5, 1.0]), ([1.0, 1.4], [0.6, 1.0])
    assert measure_run("outside_range", runs["bbr-b"], up=inside[0], down=inside[1]).value == 0.0
    assert measure_run("outside_range", runs["bbr-b"], up=outside[0], down=outside[1]).value == pytest.approx(
        0.1
    )
    for name in VARIANTS:
        assert measure_run("against_trend", runs[name], gain="up", slope="flatter").value == 0
        assert measure_run("against_trend", runs[name], gain="up", slope="steeper").value == 254
    assert measure_run("imbalance", runs["bbr"]).value == 0.0


# --- the fluid model


def test_effective_gains_are_those_of_the_worked_example() -> None:
    """A queue of 10 ms reduces a gain of 1.25: to 0.625 if the RTT is 10 ms, and to 1.042 if it is 50 ms."""
    rtprops = np.array([0.01, 0.05])
    # With this data in flight, the queueing delay is 10 ms. p/T is 1/2 for one flow and 5/6 for the other.
    in_flight = np.array([0.5 * 0.02, 0.5 * 0.06])
    queue = queueing_delay(in_flight, rtprops)
    assert queue == pytest.approx(0.01)
    assert 1.25 * rtprops / (rtprops + queue) == pytest.approx([0.625, 1.0417], abs=1e-4)


@pytest.mark.parametrize("seed", range(20))
def test_rates_add_up_to_the_link_or_the_queue_is_empty(seed: int) -> None:
    draw = random.Random(seed)
    names = ["bbr", *VARIANTS]
    flows = []
    for _ in range(draw.randint(1, 6)):
        rtprop = draw.randint(1, 20) / 200
        longest = rtprop + draw.uniform(0.001, 0.3)
        flows.append(FluidFlow(rtprop, longest, draw.uniform(0.01, 0.5), GAINS[draw.choice(names)].up))
    found = solve(flows, 10.0, 0.04)
    total = found.share.sum(axis=1)
    full = found.queueing_s > 0
    assert total[full] == pytest.approx(1.0, abs=1e-9)
    assert (total[~full] <= 1.0 + 1e-9).all()
    assert (found.queueing_s >= 0).all()
    rtts = found.queueing_s[:, None] + np.array([flow.rtprop_s for flow in flows])
    # By equation 9, the data in flight of a flow is its gain times its propagation RTT times its bandwidth
    # estimate. The estimate is at most the link's rate.
    assert (found.share * rtts <= found.gain * [flow.rtprop_s for flow in flows] + 1e-9).all()


def test_a_single_flow_keeps_a_queue_of_a_quarter_of_its_rtt() -> None:
    found = solve([FluidFlow(0.04, 0.1, 0.3, GAINS["bbr"].up)], 10.0, 0.32)
    assert found.share[-1] == pytest.approx([1.0])
    assert found.queueing_s[-1] == pytest.approx(0.25 * 0.04)


@pytest.mark.parametrize("algorithm", ["bbr", *VARIANTS])
def test_flows_with_equal_rtts_keep_their_shares(algorithm: str) -> None:
    flows = [FluidFlow(0.03, 0.2, share, GAINS[algorithm].up) for share in (0.2, 0.3, 0.5)]
    found = solve(flows, 20.0, 0.24)
    assert found.share[-1] == pytest.approx([0.2, 0.3, 0.5])


@pytest.mark.parametrize("algorithm", ["bbr", *VARIANTS])
@pytest.mark.parametrize(("longest_queue_s", "seconds"), [(0.005, 300.0), (0.025, 60.0), (0.25, 30.0)])
def test_the_longer_path_takes_the_link_with_every_gain(
    algorithm: str, longest_queue_s: float, seconds: float
) -> None:
    """With any length of the queue, only one of the two flows can keep its bandwidth estimate.

    For both flows to keep it, the length of the queue would have to solve two different equations.
    """
    found = two_flows(algorithm, longest_queue_s=longest_queue_s, seconds=seconds)
    assert found.share[-1][0] < 0.01
    at_end = found.queueing_s[-1]
    omega = (0.05 + at_end) / (0.05 + longest_queue_s)
    assert GAINS[algorithm].up(min(1.0, omega)) == pytest.approx(1 + at_end / 0.05, abs=1e-4)


def test_a_larger_gain_makes_a_longer_queue() -> None:
    queues = []
    for gain in (1.05, 1.1, 1.25, 1.5, 2.0):
        flows = [FluidFlow(p, 1.0, 0.5, lambda _, gain=gain: gain) for p in (0.01, 0.05)]
        queues.append(solve(flows, 30.0, 0.08).queueing_s.mean())
    assert queues == sorted(queues)
    assert queues[0] < queues[-1]


@pytest.mark.parametrize("algorithm", ["bbr", *VARIANTS])
def test_a_smaller_step_gives_the_same_solution(algorithm: str) -> None:
    """The step has no effect, because the period of each flow (8 RTTs) is a whole number of steps."""
    up = GAINS[algorithm].up
    flows = [FluidFlow(p, p + 0.1, 0.5, up) for p in (0.01, 0.05)]
    coarse, fine = solve(flows, 12.0, 0.08), solve(flows, 12.0, 0.01)
    assert fine.share[7::8] == pytest.approx(coarse.share, rel=1e-9)
    assert fine.queueing_s[7::8] == pytest.approx(coarse.queueing_s, rel=1e-9)


@pytest.mark.parametrize("step_s", [0.03, 0.16])
def test_a_step_that_does_not_divide_a_period_is_refused(step_s: float) -> None:
    with pytest.raises(ValueError, match=r"expected a divisor of 0\.08 s"):
        solve([FluidFlow(0.01, 0.1, 1.0, GAINS["bbr"].up)], 1.0, step_s)


# --- runs of the model


def test_the_models_runs_have_the_tables_of_a_simulation() -> None:
    args = {
        "algorithms": ["bbr"],
        "capacity_mbit": 100.0,
        "rtprops_s": {"near": 0.01, "far": 0.05},
        "longest_queues_ms": [250.0],
        "duration_s": 30.0,
        "step_s": 0.08,
    }
    (run,) = compute(Computed(model="gain-fluid", args=args))
    assert measure_run("goodput", run).value == pytest.approx(100 * 1448 / 1500)
    assert measure_run("share_at_end", run, of="near", last_s=5.0).value < 1e-6
    assert measure_run("jain_at_end", run, last_s=5.0).value == pytest.approx(0.5)
    assert measure_run("queueing_delay", run, statistic="mean").value == pytest.approx(12.5, abs=0.5)
    ends = [measure_run("gain_at_end", run, of=of, effective=True).value for of in ("near", "far")]
    assert ends == pytest.approx([1.25 * 10 / 22.5, 1.0])


@pytest.mark.parametrize(
    ("wanted", "said"),
    [
        (Computed(model="gain-curve"), "computed.model: found 'gain-curve', expected one of"),
        (Computed(model="gain-curves", args={"algorithms": ["reno"]}), "found 'reno', expected one of bbr"),
        (
            Computed(model="gain-curves", args={"names": []}),
            "computed.args: found 'names', expected one of algorithms",
        ),
    ],
)
def test_a_wrong_model_is_one_line(wanted: Computed, said: str) -> None:
    def checked() -> None:
        check(wanted)
        compute(wanted)

    with pytest.raises(NarrowsError, match=said) as caught:
        checked()
    assert "\n" not in str(caught.value)
