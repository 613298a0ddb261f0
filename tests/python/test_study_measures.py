"""Measures that studies take from a run, and claims about lower bounds."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from narrows.errors import NarrowsError
from narrows.results.measures import MEASURES, find_measure
from narrows.studies import Run, Runs, Verdict, judge, measure_run
from narrows.studies.judge import Bound
from test_judge import a_claim, a_run


def convergence_run(controller: str, seed: int, rates: list[float]) -> Run:
    """A run of two flows. The second flow starts at 1 s, and has `rates` (Mbit/s) in bins of 100 ms."""
    t = np.round(0.1 * (np.arange(10 + len(rates)) + 1), 9)
    late = np.concatenate([np.full(10, math.nan), np.array(rates) * 1e6])
    first = np.where(np.isnan(late), 100e6, 100e6 - np.nan_to_num(late))
    k = t.size
    tables = {
        "flows": {
            "flow": np.array([0, 1]),
            "name": ["f.0", "f.1"],
            "cc": [controller] * 2,
            "source": ["f"] * 2,
            "start_s": np.array([0.0, 1.0]),
            "end_s": np.array([math.nan, math.nan]),
            "sent_packets": np.array([seed, 1]),  # the seed, so that runs of different seeds differ
        },
        "flow_samples": {
            "t_s": np.tile(t, 2),
            "flow": np.repeat([0, 1], k),
            "goodput_bps": np.concatenate([first, late]),
        },
        "links": {"link": np.array([3]), "name": ["l"]},
        "link_samples": {
            "t_s": t,
            "link": np.full(k, 3),
            "throughput_bps": np.full(k, 99e6),
            "capacity_bps": np.full(k, 100e6),
        },
    }
    return Run({"algorithm": controller}, seed, tables)


def test_power_has_two_delays() -> None:
    """MET-13: the delay in the power can be the RTT or the one-way delay."""
    run = a_run("pacec", 1, 50.0)
    run.tables["flows"].update(rtt_mean_s=np.array([0.05, 0.1]), delay_mean_s=np.array([0.025, math.nan]))
    assert measure_run("one_way_delay", run, flows="long").value == pytest.approx(25.0)
    assert measure_run("power", run, flows="long").value == pytest.approx(1.0)
    assert measure_run("power", run, flows="long", delay="one-way").value == pytest.approx(2.0)
    assert math.isnan(measure_run("power", run, flows="short", delay="one-way").value)
    with pytest.raises(NarrowsError, match="power: delay: found 'both', expected one of rtt, one-way"):
        measure_run("power", run, flows="long", delay="both")


FAST = [10.0, 30.0] + [50.0] * 8


NEVER = [10.0] * 10


def test_convergence_is_read_off_the_tables() -> None:
    assert measure_run("convergence", convergence_run("brf", 1, FAST), link="l").value == pytest.approx(0.2)
    never = measure_run("convergence", convergence_run("bbr", 1, NEVER), link="l")
    assert never.censored and never.value == pytest.approx(1.0)


def test_convergence_counts_in_rtts_from_the_syn_or_the_first_data() -> None:
    run = convergence_run("brf", 1, FAST)
    run.tables["flows"]["rtt_empty_s"] = np.array([0.1, 0.1])
    assert measure_run("convergence_rtts", run, link="l").value == pytest.approx(2.0)
    assert measure_run("convergence_rtts", run, link="l", since="data").value == pytest.approx(1.0)
    never = convergence_run("bbr", 1, NEVER)
    never.tables["flows"]["rtt_empty_s"] = np.array([0.1, 0.1])
    assert measure_run("convergence_rtts", never, link="l").censored
    with pytest.raises(NarrowsError, match="convergence_rtts: since: found 'syn', expected one of SYN, data"):
        measure_run("convergence_rtts", run, link="l", since="syn")


@pytest.mark.parametrize(
    ("name", "args", "said"),
    [
        ("godput", {}, "found no measure 'godput'; nearest is 'goodput'"),
        ("goodput", {"flow": "*"}, "measure goodput: flow: found an unknown argument of goodput; nearest"),
        (
            "utilisation",
            {},
            "measure utilisation: link: found nothing, expected this argument of utilisation",
        ),
        (
            "slowdown",
            {"statistic": "p95"},
            "measure slowdown: statistic: found 'p95', expected one of mean, p99",
        ),
        ("ping_rtt", {}, "results: table: found 'pings', expected one of flows, flow_samples, links"),
        (
            "rtt",
            {"statistic": "p5"},
            "measure rtt: statistic: found 'p5', expected one of mean, p50, p95, p99, max",
        ),
    ],
)
def test_an_unknown_name_is_one_line(name: str, args: dict[str, Any], said: str) -> None:
    with pytest.raises(NarrowsError) as error:
        measure_run(name, convergence_run("a", 1, [50.0]), **args)
    assert str(error.value).startswith(said) and "\n" not in str(error.value)


def test_a_measure_is_computed_once_for_a_run(monkeypatch: pytest.MonkeyPatch) -> None:
    run, calls = convergence_run("a", 1, [50.0]), []
    counted = replace(find_measure("goodput"), function=lambda run, flows="*": calls.append(flows) or 1.0)
    monkeypatch.setitem(MEASURES, "goodput", counted)
    for flows in ("*", "f.0", "*"):
        assert measure_run("goodput", run, flows=flows).value == 1.0
    assert calls == ["*", "f.0"]
    measure_run("goodput", convergence_run("a", 2, [50.0]), flows="*")
    assert calls == ["*", "f.0", "*"]


def test_the_time_with_a_queue_adds_the_queues_of_a_path() -> None:
    """The queueing delay of the first link is always 3 ms.

    That of the second is 4 ms in five of ten samples.
    """
    t = np.tile(np.round(0.1 * np.arange(1, 11), 9), 2)
    queued = np.concatenate([np.full(10, 37_500.0), np.where(np.arange(10) < 5, 50_000.0, 0.0)])
    tables = {
        "links": {"link": np.array([0, 1]), "name": ["a", "b"]},
        "link_samples": {
            "t_s": t,
            "link": np.repeat([0, 1], 10),
            "queue_bytes": queued,
            "capacity_bps": np.full(20, 100e6),
        },
    }
    run = Run({"algorithm": "brf"}, 1, tables)

    def time(links: list[str], above_ms: float, **more: float) -> float:
        return measure_run("time_with_queue", run, links=links, above_ms=above_ms, **more).value

    assert time(["a", "b"], 5.0) == pytest.approx(0.5)
    assert time(["a", "b"], 5.0, after_s=0.2, before_s=0.4) == pytest.approx(0.2)
    assert time(["a"], 5.0) == 0.0
    assert time(["a"], 2.9) == pytest.approx(1.0)


@pytest.mark.parametrize(
    ("a", "b", "compare", "expect", "verdict"),
    [
        # The value is censored, so it is a lower bound. If it is above the limit, it decides the claim.
        (NEVER, None, "value", {"at_most": 0.5}, Verdict.NOT_REPRODUCED),
        (NEVER, None, "value", {"at_most": 5.0}, Verdict.UNJUDGED),
        # Only side A converges. So it is faster, but the exact ratio is unknown.
        (FAST, NEVER, "difference", {"below": 0.0}, Verdict.REPRODUCED),
        (FAST, NEVER, "ratio", {"about": 0.1, "within": 0.05}, Verdict.UNJUDGED),
        (FAST, NEVER, "ratio", {"about": 0.5, "within": 0.1}, Verdict.NOT_REPRODUCED),
        (NEVER, NEVER, "ratio", {"about": 1.0, "within": 0.1}, Verdict.UNJUDGED),
    ],
)
def test_lower_bounds_decide_only_claims_beyond_them(
    a: list[float], b: list[float] | None, compare: str, expect: dict[str, float], verdict: Verdict
) -> None:
    runs = [convergence_run("brf", seed, a) for seed in (1, 2)]
    more: dict[str, Any] = {"a": {"where": {"algorithm": "brf"}}}
    if b is not None:
        runs += [convergence_run("bbr", seed, b) for seed in (1, 2)]
        more["b"] = {"where": {"algorithm": "bbr"}}
    claim = a_claim(measure="convergence", args={"link": "l"}, compare=compare, expect=expect, **more)
    finding = judge(claim, {"E": Runs(runs)})
    assert finding.verdict is verdict
    assert finding.cases[0].bound in (Bound.LOWER, Bound.UPPER, Bound.NEITHER)


def test_measures_read_the_tables() -> None:
    run = a_run("bbr", 1, 60)
    assert measure_run("share", run, of="long").value == pytest.approx(0.6)
    assert measure_run("share", run, of="cubic").value == pytest.approx(0.4)
    assert measure_run("jain", run).value == pytest.approx(100**2 / (2 * (60**2 + 40**2)))
    with pytest.raises(NarrowsError, match="nearest is 'goodput'"):
        measure_run("godput", run)
    with pytest.raises(NarrowsError, match="measure jain"):
        measure_run("jain", run, colour="red")


def delay_run(delays_ms: list[float], bin_s: float = 0.1) -> Run:
    """A run of one flow, which has these queueing delays in successive bins."""
    k = len(delays_ms)
    flows = {
        "flow": np.array([7]),
        "name": ["f"],
        "cc": ["bbr"],
        "source": ["f"],
        "rtt_empty_s": np.array([0.02]),
    }
    samples = {
        "flow": np.full(k, 7),
        "t_s": bin_s * (np.arange(k) + 1),
        "rtt_s": 0.02 + 1e-3 * np.array(delays_ms),
    }
    return Run({}, 1, {"flows": flows, "flow_samples": samples})


def test_rises_are_counted_in_every_window() -> None:
    rising = [0.0, 6.0, 4.5, 6.0, 2.0]  # 4.5 is above `below_ms`, so the second 6.0 is not a new rise
    args = {"above_ms": 5.0, "below_ms": 4.0, "after_s": 0.0}
    assert measure_run("recurrences", delay_run(rising * 6), **args).value == 2
    assert measure_run("recurrence_interval", delay_run(rising * 6), **args).value == pytest.approx(0.5)
    # For one second, the delay does not rise. So rises do not recur.
    pause = rising * 2 + [0.0] * 10 + rising * 2
    assert measure_run("recurrences", delay_run(pause), **args).value == 0
    for still in (9.0, 0.2):
        run = delay_run([still] * 30)
        assert measure_run("recurrences", run, **args).value == 0
        assert math.isnan(measure_run("recurrence_interval", run, **args).value)
    # Bins without an ACK are ignored. If a run is shorter than a window, the measure is NaN.
    holes = delay_run([0.0, math.nan, 6.0, math.nan, 2.0] * 6)
    assert measure_run("recurrences", holes, **args).value == 2
    assert math.isnan(measure_run("recurrences", delay_run(rising), **args).value)
    late = {**args, "after_s": 1.0}
    assert measure_run("recurrences", delay_run([0.0] * 10 + rising * 4), **late).value == 2
