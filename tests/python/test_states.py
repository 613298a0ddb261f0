"""Measures and figure of a rate controller's states."""

from __future__ import annotations

import math

import numpy as np
import pytest
from narrows.report.kinds import draw
from narrows.results.measures.states import Visit, visits
from narrows.results.runs import Run, Runs
from narrows.studies import measure_run
from narrows.studies.model import FigureSpec

CHANGES = [
    (0.0, "state-init"),
    (0.0, "state-settle"),
    (0.2, "state-measure"),
    (0.3, "state-bw-init"),
    (0.3, "state-measure"),
    (0.4, "state-congestion"),
    (0.5, "state-bw-init"),
    (0.5, "state-congestion"),
    (0.7, "state-alloc"),
    (0.7, "state-settle"),
]


def a_run(changes=CHANGES, algorithm="brf") -> Run:
    """A run of one second, with events of two ports and of a flow."""
    events = [*((t, kind, "A->B", 1.0) for t, kind in changes), (0.1, "state-alloc", "B->C", 1.0)]
    events = sorted([*events, (0.3, "flow-added", "flow.1", 2.0)], key=lambda row: row[0])
    t = np.arange(1, 101) / 100
    tables = {
        "events": {
            name: [row[i] for row in events] for i, name in enumerate(("t_s", "kind", "entity", "value"))
        },
        "flows": {
            "flow": [0, 1],
            "name": ["flow.0", "flow.1"],
            "source": ["flow"] * 2,
            "cc": [algorithm] * 2,
        },
        "links": {"link": [0], "name": ["A->B"]},
        "flow_samples": {
            "t_s": [*t, *t],
            "flow": [0] * 100 + [1] * 100,
            "pacing_bps": [98e6] * 100 + [math.nan] * 30 + [49e6] * 70,
        },
        "link_samples": {"t_s": t, "link": [0] * 100, "queue_packets": [7.0] * 100},
    }
    return Run({"algorithm": algorithm}, 1, tables)


def test_a_state_lasts_until_the_next_change_of_its_port():
    found = visits(a_run(), "A->B")
    assert [visit.state for visit in found] == [kind.removeprefix("state-") for _, kind in CHANGES]
    assert found[2] == Visit("measure", 0.2, 0.3)
    assert found[-1] == Visit("settle", 0.7, 1.0), "the last visit lasts until the end of the run"
    assert visits(a_run(), "B->C") == [Visit("alloc", 0.1, 1.0)]
    assert visits(a_run([]), "A->B") == []


def test_measures_of_a_state():
    run = a_run()
    assert measure_run("time_in_state", run, link="A->B", state="congestion").value == pytest.approx(30.0)
    assert measure_run("time_in_state", run, link="A->B", state="alloc").value == 0.0
    late = measure_run("time_in_state", run, link="A->B", state="congestion", after_s=0.5).value
    assert late == pytest.approx(40.0)
    # A new flow also causes an event. This event does not end the state `congestion`.
    assert measure_run("length_of_state", run, link="A->B", state="congestion").value == pytest.approx(0.3)
    assert math.isnan(measure_run("length_of_state", run, link="A->B", state="absent").value)
    assert math.isnan(measure_run("time_in_state", a_run([]), link="A->B", state="congestion").value)


def test_the_figure_has_a_column_for_each_controller_with_states():
    spec = FigureSpec(
        id="f",
        experiment="E",
        kind="states",
        title="",
        caption="States.",
        args={"link": "A->B", "queues": ["A->B"], "from_s": 0.25, "until_s": 0.75},
    )
    figure = draw(spec, Runs([a_run([], "cubic"), a_run(), a_run(algorithm="brf-literal")]))
    assert [panel.title for panel in figure.panels] == ["(a) BRF", "(b) BRF, as printed", *[""] * 4]
    lanes = figure.panels[0].chart.to_dict(validate=False)
    values = lanes["data"]["values"]
    assert {row["lane"] for row in values if row["instant"]} == {"BW_INIT", "ALLOC"}
    assert {"lane": "CONGESTION", "t": 0.5, "to": 0.7, "instant": False} in values
    assert min(row["t"] for row in values) == 0.25
    assert max(row["to"] for row in values) == 0.75
    assert not draw(spec, Runs([a_run([], "cubic")])).panels


def test_a_state_without_a_name_in_the_paper_has_a_lane_below_the_others():
    spec = FigureSpec(
        id="f",
        experiment="E",
        kind="states",
        title="",
        caption="States.",
        args={"link": "A->B", "until_s": 1.0},
    )
    changes = [(0.0, "state-drain"), (0.2, "state-settle"), (0.4, "state-congestion")]
    (lanes, *_) = draw(spec, Runs([a_run(changes)])).panels
    chart = lanes.chart.to_dict(validate=False)
    assert {row["lane"] for row in chart["data"]["values"]} == {"settle", "CONGESTION", "drain"}
    y = chart["layer"][0]["encoding"]["y"]
    assert y["sort"] == y["scale"]["domain"] == ["settle", "CONGESTION", "drain"]
