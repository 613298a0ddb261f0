"""Measures of BBR's phases, and the study of the draft's test cases."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from narrows.errors import NarrowsError
from narrows.results.by_run import read_runs
from narrows.results.measures import measure_run
from narrows.results.measures.phases import phases, traced
from narrows.results.runs import Run
from narrows.scenario.load import load
from narrows.studies import find_study, load_study
from narrows.sweep import run as sweep

STEP_S = 0.1
UP, DOWN, CRUISE, REFILL = (2, 0), (2, 1), (2, 2), (2, 3)
STARTUP, DRAIN, PROBE_RTT = (0, math.nan), (1, math.nan), (3, math.nan)
SEQUENCE = [*[STARTUP] * 4, DRAIN, *[CRUISE] * 3, REFILL, *[UP] * 2, DOWN, *[CRUISE] * 2, PROBE_RTT, CRUISE]
MBIT = 1e6 / 8


def made(sequence: list[tuple[int, float]], **variables: list[float]) -> Run:
    """A run with one flow and a sample every 100 ms."""
    t = STEP_S * (np.arange(len(sequence)) + 1)
    traces = {
        "phase": [number for number, _ in sequence],
        "step": [step for _, step in sequence],
        **variables,
    }
    count, keys = len(sequence), list(traces)
    tables: dict[str, Any] = {
        "flows": {"flow": np.array([0]), "name": ["flow"], "cc": ["bbr3"], "source": ["flow"]},
        "traces": {
            "t_s": np.tile(t, len(keys)),
            "entity": ["flow"] * count * len(keys),
            "key": [key for key in keys for _ in range(count)],
            "value": np.array([value for key in keys for value in traces[key]], dtype=float),
        },
        "links": {"link": np.array([0]), "name": ["tight"]},
        "link_samples": {"t_s": t, "link": np.zeros(count), "capacity_bps": np.full(count, 10e6)},
        "flow_samples": {
            "t_s": t,
            "flow": np.zeros(count),
            "in_flight": np.arange(count) * 10.0,
            "cwnd": np.arange(count) + 4.0,
        },
    }
    return Run({}, 1, tables)


def value(name: str, run: Run, **args: Any) -> float:
    return measure_run(name, run, **args).value


def test_the_phases_in_order() -> None:
    found = [(v.state, round(v.begin_s, 1), round(v.end_s, 1)) for v in phases(made(SEQUENCE), "flow")]
    assert found == [
        ("startup", 0.1, 0.5),
        ("drain", 0.5, 0.6),
        ("cruise", 0.6, 0.9),
        ("refill", 0.9, 1.0),
        ("up", 1.0, 1.2),
        ("down", 1.2, 1.3),
        ("cruise", 1.3, 1.5),
        ("probe_rtt", 1.5, 1.6),
        ("cruise", 1.6, 1.6),
    ]


def test_a_controller_without_steps_has_the_phase_probe_bw() -> None:
    run = made([STARTUP, DRAIN, (2, math.nan), PROBE_RTT])
    assert [visit.state for visit in phases(run, "flow")] == ["startup", "drain", "probe_bw", "probe_rtt"]


def test_a_run_without_traces_has_no_phases() -> None:
    run = made(SEQUENCE)
    bare = Run({}, 1, {name: table for name, table in run.tables.items() if name != "traces"})
    assert phases(bare, "flow") == [] and math.isnan(value("next_phase", bare, phase="up", expected="down"))


def test_the_next_phase() -> None:
    run = made(SEQUENCE)
    assert value("next_phase", run, phase="startup", expected="drain") == 100.0
    assert value("next_phase", run, phase="startup", expected="down") == 0.0
    # Cruise occurs three times: before Refill, before ProbeRTT, and at the end of the run.
    assert value("next_phase", run, phase="cruise", expected="refill") == 50.0
    assert value("next_phase", run, phase="cruise", expected=["refill", "probe_rtt"]) == 100.0
    assert value("next_phase", run, phase="cruise", expected="probe_rtt", after_s=1.0) == 100.0
    assert math.isnan(value("next_phase", run, phase="probe_bw", expected="down"))


def test_the_time_in_a_phase_and_between_phases() -> None:
    run = made([*SEQUENCE, *SEQUENCE[8:]])
    # The sequences last 1.6 s and 0.8 s. The second sequence begins in Refill.
    assert value("time_in_phase", run, phase="startup") == pytest.approx(100 * 0.4 / 2.3)
    assert value("time_in_phase", run, phase="startup", after_s=0.5) == pytest.approx(0.0)
    assert value("shortest_phase", run, phase="up") == pytest.approx(0.2)
    assert value("between_phases", run, phase="probe_rtt") == pytest.approx(0.7)
    assert math.isnan(value("between_phases", run, phase="drain"))


def test_a_variable_in_a_phase() -> None:
    gains = {"startup": 2.8, "drain": 0.5}
    names = ["startup"] * 4 + ["drain"] + ["cruise"] * 11
    run = made(SEQUENCE, pacing_gain=[gains.get(name, 1.0) for name in names])
    assert value("traced_in_phase", run, key="pacing_gain", phase="drain") == 0.5
    assert value("traced_in_phase", run, key="pacing_gain", phase="startup") == pytest.approx(2.8)
    assert math.isnan(value("traced_in_phase", run, key="no_variable", phase="drain"))


def test_the_estimate_is_a_share_of_the_links_rate() -> None:
    rates = [2 * MBIT, 4 * MBIT, 8 * MBIT, 9.8 * MBIT, *[10 * MBIT] * 12]
    run = made(SEQUENCE, max_bw=rates)
    assert value("estimate_at_end", run, phase="startup", link="tight") == pytest.approx(98.0)
    assert value("estimate_after", run, link="tight", after_s=0.5) == pytest.approx(100.0)
    # BBR v1 has no other estimate than `bw`.
    assert value("estimate_at_end", made(SEQUENCE, bw=rates), phase="drain", link="tight") == pytest.approx(
        100
    )


def test_rounds_without_growth_count_from_the_last_growth_of_a_quarter() -> None:
    sequence = [*[STARTUP] * 8, DRAIN, CRUISE]
    rounds = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]
    # Test vector TV-B1 has the rates of six rounds. Startup ends in the sixth round.
    rates = [0.0, 0.0, 10.0, 20.0, 40.0, 48.0, 49.0, 49.0, 49.0, 49.0]
    run = made(sequence, round=rounds, max_bw=rates)
    assert value("rounds_without_growth", run) == 3.0


def test_data_in_flight_at_the_end_of_a_phase() -> None:
    # The BDP is 12 Mbit/s x 50 ms, or 50 full packets. After Drain, 50 packets are in flight.
    run = made(SEQUENCE, bw=[12 * MBIT] * 16, min_rtt=[0.05] * 16)
    assert value("inflight_at_end", run, phase="drain") == pytest.approx(1.0)


def test_the_smallest_window() -> None:
    assert value("smallest_window", made(SEQUENCE), after_s=0.3) == 6.0


def test_the_largest_window_in_bdps() -> None:
    # The largest window in Startup is 7 segments. The BDP is 5 packets.
    run = made(SEQUENCE, bw=[12 * MBIT] * 16, min_rtt=[0.005] * 16)
    assert value("largest_window", run, phase="startup") == pytest.approx(7 / 5)


def test_the_time_in_a_phase_has_an_end() -> None:
    run = made(SEQUENCE)
    assert value("time_in_phase", run, phase="startup", until_s=0.3) == pytest.approx(100.0)
    assert value("time_in_phase", run, phase="startup", until_s=0.9) == pytest.approx(50.0)
    assert math.isnan(value("time_in_phase", run, phase="startup", after_s=2.0))


def test_the_change_of_a_variable_at_the_end_of_a_phase() -> None:
    bound = [math.nan] * 9 + [100.0, 120.0] + [84.0] * 5
    run = made(SEQUENCE, inflight_longterm=bound)
    assert value("change_at_end", run, key="inflight_longterm", phase="up") == pytest.approx(70.0)
    assert math.isnan(value("change_at_end", run, key="inflight_longterm", phase="startup"))


@pytest.mark.parametrize(
    ("phase", "said"),
    [((7, math.nan), "trace: phase: found 7, expected"), ((2, 9), "trace: step: found 9, expected")],
)
def test_a_phase_that_the_draft_does_not_have(phase: tuple[int, float], said: str) -> None:
    with pytest.raises(NarrowsError, match=said):
        phases(made([STARTUP, phase]), "flow")


def test_wrong_arguments() -> None:
    with pytest.raises(NarrowsError, match=r"phase: found 'drian'.*'drain'"):
        value("time_in_phase", made(SEQUENCE), phase="drian")
    with pytest.raises(NarrowsError, match="expected: found 'don'"):
        value("next_phase", made(SEQUENCE), phase="up", expected="don")
    with pytest.raises(NarrowsError, match="expected: found no phase"):
        value("next_phase", made(SEQUENCE), phase="up", expected=[])
    with pytest.raises(NarrowsError, match="flow f: found 0 of that name"):
        value("smallest_window", made(SEQUENCE), of="f")
    with pytest.raises(NarrowsError, match="flow f: found 0 of that name"):
        traced(made(SEQUENCE), "f", "bw")


def test_visits_have_numbers() -> None:
    run = made(SEQUENCE)
    assert value("next_phase", run, phase="cruise", expected="refill", visit=1) == 100.0
    assert value("next_phase", run, phase="cruise", expected="refill", visit=2) == 0.0
    assert value("shortest_phase", run, phase="cruise") == pytest.approx(0.2)
    assert value("shortest_phase", run, phase="cruise", visit=1) == pytest.approx(0.3)
    # The third visit does not end before the run does, and there is no fourth one.
    for visit in (3, 4):
        assert math.isnan(value("shortest_phase", run, phase="cruise", visit=visit))


def test_a_flow_that_returns_to_a_phase() -> None:
    run = made([UP, UP, DOWN, UP, CRUISE, CRUISE, CRUISE, UP, CRUISE])
    # The second visit to Up begins 0.1 s after the end of the first visit, and the third one 0.3 s after the
    # end of the second visit.
    assert value("return_to_phase", run, phase="up", within_s=0.15, visit=1) == 100.0
    assert value("return_to_phase", run, phase="up", within_s=0.15, visit=2) == 0.0
    assert value("return_to_phase", run, phase="up", within_s=0.35) == pytest.approx(200 / 3)


def test_a_bound_that_is_restored() -> None:
    nan = math.nan
    sequence = [UP, UP, DOWN, UP, DOWN, UP, CRUISE]
    bounds = {
        "never set": ([nan] * 7, 100.0),
        "restored": ([nan, nan, 70.0, nan, 70.0, nan, nan], 100.0),
        "still set": ([nan, nan, 70.0, 70.0, 70.0, 70.0, 70.0], 0.0),
        "lower": ([80.0, 80.0, 70.0, 60.0, 60.0, 60.0, 60.0], 75.0),
        "removed": ([80.0, 80.0, 70.0, nan, nan, nan, nan], 100.0),
    }
    for name, (values, expected) in bounds.items():
        run = made(sequence, inflight_longterm=values)
        assert value("restored", run, key="inflight_longterm", phase="up") == pytest.approx(expected), name
    assert math.isnan(value("restored", made(sequence), key="inflight_longterm", phase="up"))


def test_a_negative_visit_is_an_error() -> None:
    with pytest.raises(NarrowsError, match="visit: found -1, expected 0"):
        value("shortest_phase", made([UP, DOWN, UP, CRUISE]), phase="up", visit=-1)


def test_rounds_and_data_in_flight_in_a_phase() -> None:
    run = made([UP, UP, UP, DOWN, UP, CRUISE], round=[1.0, 2.0, 4.0, 5.0, 6.0, 6.0])
    assert value("rounds_in_phase", run, phase="up") == 3.0
    assert value("rounds_in_phase", run, phase="up", visit=2) == 0.0
    assert value("least_inflight", run, phase="up") == 0.0
    assert value("least_inflight", run, phase="up", visit=2) == 40.0


def test_each_case_of_the_draft_is_run() -> None:
    study = load_study(find_study("bbr-draft"))
    run = {case.strip() for claim in study.claims for case in claim.source.split(",")}
    assert run == {f"A.{number}" for number in range(1, 23)}


def test_bbr3_has_the_phases_of_the_draft_on_a_constant_path(tmp_path: Path) -> None:
    pytest.importorskip("narrows._native")
    overrides = {"duration": "10s", "sweep": {}}
    (run,) = read_runs(sweep(load(find_study("bbr-draft") / "path.toml", overrides=overrides)))
    assert value("rounds_without_growth", run) == 3.0
    assert value("estimate_at_end", run, phase="startup", link="tight") == pytest.approx(100.0, abs=2.0)
    assert value("next_phase", run, phase="startup", expected="drain") == 100.0
    assert value("traced_in_phase", run, key="pacing_gain", phase="drain") == 0.5
    assert value("shortest_phase", run, phase="probe_rtt") >= 0.2
