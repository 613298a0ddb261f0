"""Metrics and figures of many short flows, on constructed runs."""

from __future__ import annotations

import math

import numpy as np
import pytest
from narrows.report.kinds import draw
from narrows.results.measures.crowds import flow_counts
from narrows.results.runs import Run, Runs
from narrows.studies import measure_run
from narrows.studies.model import FigureSpec


def a_run(controller: str = "bdr", counted: float = 3.0) -> Run:
    """Flows of 1, 30 and 300 packets, and one unfinished flow."""
    start, fct = [4.0, 5.0, 6.0, 9.0], [0.2, 0.3, 2.0, math.nan]
    t = np.arange(1.0, 11.0)
    flows = {
        "name": ["f"] * 4,
        "source": ["f"] * 4,
        "cc": [controller] * 4,
        "start_s": start,
        "fct_s": fct,
        "ideal_fct_s": [0.2, 0.2, 0.5, 0.2],
        "size_bytes": [948.0, 30 * 948.0, 300 * 948.0, 948.0],
    }
    traces = {
        "t_s": [*t, *t],
        "entity": ["R1->R2"] * 20,
        "key": ["flows"] * 10 + ["share"] * 10,
        "value": [counted] * 10 + [7.0] * 10,
    }
    return Run({"algorithm": controller}, 1, {"flows": flows, "traces": traces})


def test_completion_times_cover_only_the_selected_sizes():
    assert measure_run("fct", a_run(), most_packets=30).value == pytest.approx(250.0)
    assert measure_run("fct", a_run(), least_packets=100).value == pytest.approx(2000.0)
    assert math.isnan(measure_run("fct", a_run(), least_packets=1000).value)
    assert measure_run("slowdown", a_run()).value == pytest.approx((1 + 1.5 + 4) / 3)
    assert measure_run("finished", a_run(), before_s=0.0).value == pytest.approx(100.0)


def test_the_exponent_of_completion_times_is_one_if_they_are_proportional_to_sizes():
    def exponent(times, **args):
        flows = {
            "name": ["f"] * 5,
            "source": ["f"] * 5,
            "cc": ["bdr"] * 5,
            "start_s": [4.0, 4.1, 4.2, 4.3, 9.0],  # the last flow begins too late to be counted
            "fct_s": [*times, 0.1],
            "size_bytes": [948.0 * n for n in (10, 100, 200, 400, 5000)],
        }
        return measure_run("size_exponent", Run({}, 1, {"flows": flows}), **args).value

    assert exponent([0.1, 1.0, 2.0, 4.0]) == pytest.approx(1.0)
    assert exponent([0.2, 0.2, 0.2, 0.2]) == pytest.approx(0.0)
    # The handshake takes 0.1 s. After it, every 100 packets take 0.1 s, and 10 packets also take 0.1 s. So
    # the time after the handshake is proportional to the size only for large flows.
    times = [0.2, 0.2, 0.3, 0.5]
    assert exponent(times, least_packets=100, handshake_s=0.1) == pytest.approx(1.0)
    assert 0.6 < exponent(times, least_packets=100) < 0.7
    assert math.isnan(exponent(times, least_packets=400)), "the exponent is undefined for a single size"


def test_flows_are_counted_from_syn_to_last_ack():
    t, estimate, truth = flow_counts(a_run(), "R1->R2")
    assert dict(zip(t, truth, strict=True)) == {
        1: 0, 2: 0, 3: 0, 4: 1, 5: 1, 6: 1, 7: 1, 8: 0, 9: 1, 10: 1,
    }  # fmt: skip
    assert set(estimate) == {3.0}
    error = measure_run("flow_count_error", a_run(), link="R1->R2", after_s=5.5)
    assert error.value == pytest.approx(200.0)
    bias = measure_run("flow_count_error", a_run(counted=0.5), link="R1->R2", after_s=5.5, statistic="bias")
    assert bias.value == pytest.approx(-50.0)


@pytest.mark.parametrize("kind", ["completion-over-size", "flow-count"])
def test_figures_are_drawn(kind):
    spec = FigureSpec(
        id="x", experiment="B", kind=kind, title="t", caption="c",
        args={"link": "R1->R2", "ideal": {"rtt_s": 0.1, "capacity_mbit": 100, "load": 0.2}},
    )  # fmt: skip
    figure = draw(spec, Runs([a_run("bdr"), a_run("reno")]))
    assert figure.panels
    assert figure.panels[0].chart.to_dict()["layer"]
