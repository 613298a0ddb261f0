"""Measures of allotted rates, of the response to capacity changes, and of the flow count."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from narrows import metrics
from narrows.errors import NarrowsError
from narrows.results.measures import MEASURES
from narrows.studies import Run, find_study, load_study, measure_run
from narrows.studies.load import known_studies


def a_run(
    told: list[list[float]],
    capacity: list[float],
    *,
    column: str = "allocation_bps",
    start: tuple[float, ...] = (0.0, 0.0),
    end: tuple[float, ...] = (math.nan, math.nan),
) -> Run:
    """A run whose flows have these rates in Mbit/s, in bins of 0.1 s."""
    count, k = len(told), len(capacity)
    t = np.round(0.1 * (np.arange(k) + 1), 9)
    nothing = np.full(count * k, math.nan)
    samples = {"t_s": np.tile(t, count), "flow": np.repeat(np.arange(count), k)}
    samples |= dict.fromkeys(("allocation_bps", "pacing_bps", "send_bps"), nothing)
    samples[column] = 1e6 * np.concatenate([np.array(rates, dtype=float) for rates in told])
    flows = {
        "flow": np.arange(count),
        "name": [f"f.{i}" for i in range(count)],
        "cc": ["brf"] * count,
        "source": ["f"] * count,
        "start_s": np.array(start[:count]),
        "end_s": np.array(end[:count]),
        "goodput_bps": np.array([1e6 * rates[-1] for rates in told]),
    }
    links = {"link": np.array([3, 4]), "name": ["l", "m"], "capacity_bps": np.array([1e8, 4e7])}
    link_samples = {"t_s": t, "link": np.full(k, 3), "capacity_bps": 1e6 * np.array(capacity, dtype=float)}
    tables = {"flows": flows, "flow_samples": samples, "links": links, "link_samples": link_samples}
    return Run({}, 1, tables)


ONE = {"routes": {"f*": ["l"]}, "after_s": 0.0}


@pytest.mark.parametrize("column", ["allocation_bps", "pacing_bps"])
def test_the_error_of_the_allotted_rate_is_relative_to_the_share(column: str) -> None:
    # Each share is 50, so the errors are 0, 10, 20 and 40 %.
    run = a_run([[50, 45], [60, 70]], [100, 100], column=column)
    assert measure_run("allocation_error", run, **ONE).value == pytest.approx(17.5)
    assert measure_run("allocation_error", run, **{**ONE, "after_s": 0.15}).value == pytest.approx(25.0)
    none = a_run([[50], [50]], [100], column="send_bps")
    assert math.isnan(measure_run("allocation_error", none, **ONE).value)


def test_shares_follow_the_flows_that_are_active_and_the_capacity() -> None:
    # The second flow is active only at the second and the third sample. At the fourth sample, the capacity is
    # halved. So the first flow's shares are 100, 50, 50 and 50.
    nan = math.nan
    run = a_run(
        [[100, 50, 50, 50], [nan, 50, 50, 90]], [100, 100, 100, 50], start=(0.0, 0.15), end=(nan, 0.35)
    )
    assert measure_run("allocation_error", run, **ONE).value == pytest.approx(0.0)
    wrong = a_run(
        [[100, 50, 50, 75], [nan, 50, 50, 90]], [100, 100, 100, 50], start=(0.0, 0.15), end=(nan, 0.35)
    )
    assert measure_run("allocation_error", wrong, **ONE).value == pytest.approx(50 / 6)


def test_a_flow_with_little_data_leaves_its_share_to_the_others() -> None:
    run = a_run([[90], [10]], [100])
    limited = {**ONE, "demands_mbit": {"f.1": 10.0}}
    assert measure_run("allocation_error", run, **limited).value == pytest.approx(0.0)
    assert measure_run("allocation_error", run, **ONE).value == pytest.approx(80.0)


def test_the_time_above_the_capacity_is_a_share_of_samples() -> None:
    run = a_run([[50, 50, 60, 20], [50, 60, 30, 20]], [100, 100, 100, 30])
    assert measure_run("time_above_capacity", run, link="l", after_s=0.0).value == pytest.approx(50.0)
    none = a_run([[50], [50]], [100], column="send_bps")
    assert math.isnan(measure_run("time_above_capacity", none, link="l", after_s=0.0).value)


def test_the_response_ends_when_a_flow_is_near_its_new_share() -> None:
    capacity = [100, 100, 50, 50, 50, 100, 100]
    fast = a_run([[50, 50, 40, 27, 25, 50, 50], [50, 50, 25, 25, 25, 50, 50]], capacity, column="send_bps")
    assert measure_run("responsiveness", fast, link="l", change_s=0.2).value == pytest.approx(0.05)
    assert not measure_run("responsiveness", fast, link="l", change_s=0.2).censored
    # The first flow comes near its share of 25 only after the capacity has changed again.
    slow = a_run([[50, 50, 40, 40, 40, 25, 25], [50, 50, 25, 25, 25, 50, 50]], capacity, column="send_bps")
    found = measure_run("responsiveness", slow, link="l", change_s=0.2)
    assert found.censored and found.value == pytest.approx(0.1)


def test_max_min_shares_are_computed_from_the_routes() -> None:
    # f.0 crosses l (100 Mbit/s) and m (40 Mbit/s), and f.1 crosses only l. The shares are 40 and 60.
    routes = {"f.0": ["l", "m"], "f.1": ["l"]}
    assert measure_run("jain_max_min", a_run([[20], [30]], [100]), routes=routes).value == pytest.approx(1.0)
    uneven = measure_run("jain_max_min", a_run([[30], [30]], [100]), routes=routes).value
    assert uneven == pytest.approx(metrics.jain([30 / 40, 30 / 60]))
    with pytest.raises(NarrowsError, match="link x: found 0 of that name"):
        measure_run("jain_max_min", a_run([[20], [30]], [100]), routes={"f*": ["x"]})


def test_the_count_of_flows_has_an_error_a_bias_and_an_rms() -> None:
    traces: dict[str, Any] = {
        "entity": ["l"] * 3,
        "key": ["flows"] * 3,
        "t_s": np.array([1.0, 2.0, 3.0]),
        "value": np.array([9.0, 1.2, 1.0]),
    }
    flows = {"start_s": np.array([0.5, 2.5]), "fct_s": np.array([math.nan, math.nan])}
    run = Run({}, 1, {"traces": traces, "flows": flows})
    # Two estimates are later than 1.5 s: 1.2 while one flow is active (+20 %), and 1.0 while two flows are
    # active (-50 %).
    args = {"link": "l", "after_s": 1.5}
    values = {
        s: measure_run("flow_count_error", run, **args, statistic=s).value for s in ("mean", "bias", "rms")
    }
    assert values == pytest.approx({"mean": 35.0, "bias": -15.0, "rms": 100 * math.sqrt((0.04 + 0.25) / 2)})
    with pytest.raises(NarrowsError, match="nearest is 'rms'"):
        measure_run("flow_count_error", run, **args, statistic="rmss")


def test_every_measure_of_a_run_is_in_some_study() -> None:
    text = ""
    for name in known_studies():
        folder = load_study(find_study(name)).folder
        text += "".join((folder / file).read_text() for file in ("study.toml", "claims.toml"))
    unused = [name for name in MEASURES if f'"{name}"' not in text]
    # No paper of the studies has requests. Scenarios use this measure in expectations.
    assert unused == ["request_time"]


def test_a_link_is_full_at_the_end_of_the_first_bin_with_nine_tenths_of_its_capacity() -> None:
    def filling(carried: list[float], **args: float) -> Any:
        run = a_run([[1.0] * len(carried)], [100.0] * len(carried))
        run.tables["link_samples"]["throughput_bps"] = 1e6 * np.array(carried)
        return measure_run("filling_time", run, link="l", **args)

    found = filling([0, 20, 89, 90, 10])
    assert found.value == pytest.approx(0.4) and not found.censored
    assert filling([95, 0, 20, 95], start_s=0.1).value == pytest.approx(0.3)
    assert filling([0, 20, 50, 60], at_least=0.5).value == pytest.approx(0.3)
    never = filling([0, 20, 50, 60])
    assert never.value == pytest.approx(0.4) and never.censored
