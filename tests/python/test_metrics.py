"""Metrics: worked examples, and properties for any input."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from narrows import metrics

# Rates are 0 or at least 1e-3 bit/s, because the results of smaller rates can be denormal numbers.
RATES = st.lists(st.just(0.0) | st.floats(1e-3, 1e11), min_size=1, max_size=50)
SOME_RATE = RATES.filter(lambda rates: max(rates) > 0)


# --- the vectors


@pytest.mark.parametrize(
    ("rates", "index"),
    [([10, 10], 1.0), ([90, 10], 0.6098), ([1, 0, 0, 0], 0.25), ([5, 5, 5, 1], 0.8421)],
)
def test_jain(rates: list[float], index: float) -> None:
    assert metrics.jain(rates) == pytest.approx(index, abs=5e-5)


def test_smoothness() -> None:
    result = metrics.smoothness([10, 12, 9, 9])
    assert result.index == pytest.approx(0.15)
    assert result.skipped == 0


def test_power() -> None:
    assert metrics.power(48.9, 54.2) == pytest.approx(0.902, abs=5e-4)
    assert metrics.normalised_power(0.9, 1.0, 0.060, 0.050) == pytest.approx(0.75)


def test_harm() -> None:
    assert metrics.harm(50, 20, more_is_better=True) == pytest.approx(0.6)
    assert metrics.harm(20, 80, more_is_better=False) == pytest.approx(0.75)


def test_utilisation() -> None:
    rate = metrics.throughput(1190 * 1500, 0.0, 0.15)
    assert metrics.utilisation(rate, 100e6) == pytest.approx(0.952)


def test_drop_rate() -> None:
    assert metrics.drop_rate(100, 900 + 100) == pytest.approx(0.1)


def test_queueing_delay() -> None:
    assert metrics.queueing_delay([0.065], 0.02024)[0] == pytest.approx(0.04476)


def test_ideal_fct() -> None:
    assert metrics.ideal_fct(100 * 1500, 100e6, 0.020) == pytest.approx(0.052)


@pytest.mark.parametrize(("value", "baseline", "percent"), [(94.6, 75.3, 25.6), (94.6, 9.348, 912.0)])
def test_gain(value: float, baseline: float, percent: float) -> None:
    assert metrics.gain(value, baseline) == pytest.approx(percent, abs=0.05)


@pytest.mark.parametrize(
    ("index", "ratio"),
    [(0.625, 7.873), (0.95, 1.595), (0.964, 1.479), (0.965, 1.470), (0.99, 1.223), (0.7036, 4.7)],
)
def test_met_32_two_flow_ratio(index: float, ratio: float) -> None:
    assert metrics.two_flow_ratio(index) == pytest.approx(ratio, rel=2e-3)


@pytest.mark.parametrize(
    # Two-sided 95 % points of Student's t.
    ("dof", "point"),
    [
        (1, 12.7062),
        (2, 4.30265),
        (3, 3.18245),
        (4, 2.77645),
        (9, 2.26216),
        (10, 2.22814),
        (29, 2.04523),
        (30, 2.04227),
        (120, 1.97993),
    ],
)
def test_t_quantile(dof: int, point: float) -> None:
    assert metrics.t_quantile(0.975, dof) == pytest.approx(point, abs=5e-5)
    assert metrics.t_quantile(0.025, dof) == pytest.approx(-point, abs=5e-5)


def test_t_quantile_other_levels() -> None:
    assert metrics.t_quantile(0.95, 9) == pytest.approx(1.833113, abs=1e-6)
    assert metrics.t_quantile(0.995, 4) == pytest.approx(4.604095, abs=1e-6)
    assert metrics.t_quantile(0.5, 7) == 0.0


# --- undefined results are NaN, and invalid input is refused


def test_undefined_is_nan() -> None:
    undefined = [
        metrics.jain([]),
        metrics.jain([0, 0]),
        metrics.jain([math.nan]),
        metrics.two_flow_ratio(0.3),
        metrics.gain(1, 0),
        metrics.harm(0, 0, more_is_better=True),
        metrics.drop_rate(0, 0),
        metrics.throughput(1, 2, 2),
        metrics.utilisation([1.0], [0.0]),
        metrics.power(1, 0),
        metrics.smoothness([1.0]).index,
        metrics.jitter([1.0]),
        metrics.summarise_delay([]).p95,
        metrics.mean_ci([]).mean,
        metrics.mean_ci([1.0]).low,
        metrics.mean_censored([]).seconds,
        metrics.count_error([1], [0]).bias,
        metrics.feedback_share(0, 0),
        metrics.feedback_rate(3, 0),
    ]
    assert all(math.isnan(value) for value in undefined)


@pytest.mark.parametrize(
    "call",
    [
        lambda: metrics.jain([1, -1]),
        lambda: metrics.drop_rate(3, 2),
        lambda: metrics.feedback_share(3, 2),
        lambda: metrics.paired_difference([1, 2], [1]),
        lambda: metrics.t_quantile(1.0, 3),
        lambda: metrics.rebin([1.0], [1.0, 2.0], 0.1),
        lambda: metrics.max_min_shares([1.0], [[]]),
        lambda: metrics.demand_aware_jain([1.0], [0.0]),
    ],
)
def test_nonsense_is_refused(call: Callable[[], object]) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 (the texts are not the contract)
        call()


def test_smoothness_is_undefined_when_many_terms_are() -> None:
    assert math.isnan(metrics.smoothness([1, 0, 1, 0, 1]).index)
    assert metrics.smoothness([0.0] + [1.0] * 40).index == 0.0
    assert metrics.smoothness([0, 5, 10, 10], times_s=[0, 1, 2, 3]).index == 0.0


# --- properties for any input


@given(SOME_RATE)
def test_jain_is_between_1_over_n_and_1(rates: list[float]) -> None:
    assert 1 / len(rates) - 1e-9 <= metrics.jain(rates) <= 1


@given(SOME_RATE, st.floats(1e-6, 1e6))
def test_jain_knows_no_unit_and_no_order(rates: list[float], unit: float) -> None:
    index = metrics.jain(rates)
    assert metrics.jain([unit * rate for rate in rates]) == pytest.approx(index, rel=1e-6)
    assert metrics.jain(rates[::-1]) == pytest.approx(index, rel=1e-9)


@given(SOME_RATE)
def test_an_inactive_flow_does_not_count(rates: list[float]) -> None:
    assert metrics.jain([*rates, math.nan]) == metrics.jain(rates)
    assert metrics.jain([*rates, 0.0]) <= metrics.jain(rates)


@given(st.floats(1.0, 1e4))
def test_two_flow_ratio_undoes_jain(ratio: float) -> None:
    assert metrics.two_flow_ratio(metrics.jain([ratio, 1.0])) == pytest.approx(ratio, rel=1e-4)


@given(st.lists(st.floats(-1e9, 1e9), min_size=2, max_size=30), st.floats(0.5, 0.999))
def test_the_interval_holds_the_mean(values: list[float], level: float) -> None:
    interval = metrics.mean_ci(values, level)
    assert interval.low <= interval.mean <= interval.high
    assert interval.n == len(values)


@given(st.integers(1, 200), st.floats(0.51, 0.9999))
def test_t_quantile_is_odd_and_grows(dof: int, probability: float) -> None:
    point = metrics.t_quantile(probability, dof)
    assert point == pytest.approx(-metrics.t_quantile(1 - probability, dof), rel=1e-6)
    assert metrics.t_quantile(min(0.99999, probability + 1e-4), dof) > point > 0
    assert metrics.t_quantile(probability, dof + 1) < point


@given(RATES, st.floats(1.0, 1e10))
def test_max_min_never_exceeds_demand_or_capacity(demands: list[float], capacity: float) -> None:
    shares = metrics.max_min_share(capacity, demands)
    assert (shares <= np.array(demands) * (1 + 1e-9) + 1e-9).all()
    assert shares.sum() == pytest.approx(min(capacity, sum(demands)), rel=1e-6, abs=1e-6)


def test_max_min_over_two_links() -> None:
    # A long flow crosses both links. Each link also has one short flow.
    shares = metrics.max_min_shares([10.0, 6.0], [[0, 1], [0], [1]])
    assert shares == pytest.approx([3.0, 7.0, 3.0])


@given(st.lists(st.floats(0, 1e9), min_size=1, max_size=200), st.integers(1, 10))
def test_rebin_keeps_the_total(values: list[float], factor: int) -> None:
    values = values[: len(values) // factor * factor] or values[:1] * factor
    ends = (np.arange(len(values)) + 1) * 0.02
    starts, means = metrics.rebin(ends, values, 0.02 * factor)
    assert means.sum() * factor == pytest.approx(sum(values), rel=1e-9, abs=1e-6)
    assert starts == pytest.approx(np.arange(len(means)) * 0.02 * factor)


def test_rebin_omits_bins_without_a_flow() -> None:
    starts, means = metrics.rebin([0.1, 0.2, 0.3, 0.4], [1, math.nan, math.nan, math.nan], 0.2)
    assert starts.tolist() == [0.0] and means.tolist() == [1.0]


def test_utilisation_of_a_varying_link_is_not_the_mean_of_the_quotients() -> None:
    assert metrics.utilisation([10, 50], [10, 100]) == pytest.approx(60 / 110)


# --- convergence


def _newcomer(rates: list[float], *, other: float = 50.0) -> metrics.Censored:
    starts = np.arange(len(rates)) * 0.1
    matrix = np.column_stack([np.full(len(rates), other), rates])
    return metrics.convergence_time(starts, 0.1, matrix, 1, 50.0, 1.0, join_s=0.0, until_s=len(rates) * 0.1)


def test_convergence_is_the_first_bin_that_is_held() -> None:
    assert _newcomer([10, 20, 45, 48, 50, 50, 50, 50]) == metrics.Censored(pytest.approx(0.2), False)
    # After a bin outside the tolerance, the period of convergence starts again.
    assert _newcomer([50, 50, 50, 20, 50, 50, 50, 50, 50]).seconds == pytest.approx(0.4)
    assert _newcomer([50] * 6) == metrics.Censored(0.0, False)


def test_convergence_that_is_not_seen_is_censored() -> None:
    late = _newcomer([10, 10, 10, 50, 50, 50])
    assert late.censored and late.seconds == pytest.approx(0.6)
    assert str(late) == "> 0.6 s"
    mean = metrics.mean_censored([late, metrics.Censored(0.2)])
    assert mean.censored and mean.seconds == pytest.approx(0.4)


def test_convergence_needs_fairness_among_all_and_a_used_link() -> None:
    starts = np.arange(10) * 0.1
    fair = np.column_stack([np.full(10, 50.0), np.full(10, 50.0)])
    idle = metrics.convergence_time(starts, 0.1, fair, 1, 50.0, 0.5, join_s=0, until_s=1)
    assert idle.censored
    unfair = np.column_stack([np.full(10, 10.0), np.full(10, 90.0), np.full(10, 50.0)])
    assert metrics.convergence_time(starts, 0.1, unfair, 2, 50.0, 1.0, join_s=0, until_s=1).censored


def test_convergence_is_counted_before_the_next_join_only() -> None:
    rates = np.column_stack([np.full(20, 50.0), [0.0] * 10 + [50.0] * 10])
    result = metrics.convergence_time(np.arange(20) * 0.1, 0.1, rates, 1, 50.0, 1.0, join_s=0, until_s=1.2)
    assert result.censored and result.seconds == pytest.approx(1.2)


def test_epsilon_fairness_and_responsiveness() -> None:
    assert metrics.epsilon_fair([9.5, 10], 0.05) and not metrics.epsilon_fair([9, 10], 0.05)
    quick = metrics.responsiveness([0, 1, 2, 3], [10, 10, 18, 19.5], 20.0, change_s=1.0)
    assert quick == metrics.Censored(1.0)
    assert metrics.responsiveness([0, 1], [1, 1], 20.0, change_s=0.0).censored


def test_slowdown_lists_the_unfinished() -> None:
    values = metrics.slowdown([0.052, math.nan, 0.104], [0.052, 0.052, 0.052])
    groups = metrics.slowdown_by_size([1, 2, 3], values, groups=1)
    assert groups[0].finished == 2 and groups[0].unfinished == 1
    assert groups[0].mean == pytest.approx(1.5)


def test_processor_sharing_and_estimates() -> None:
    assert metrics.processor_sharing_fct(125_000, 1e6, 0.5) == pytest.approx(2.0)
    error = metrics.count_error([11, 9], [10, 10])
    assert (error.mean_absolute, error.bias, error.rms) == pytest.approx((0.1, 0.0, 0.1))
    assert metrics.allocation_error([11.0], [10.0])[0] == pytest.approx(0.1)
    assert metrics.time_above_capacity([[5, 6], [5, 5]], 10) == 0.5


def test_the_cost_of_feedback() -> None:
    # Feedback takes 12 bytes of a full packet, and 8 bytes of an ACK of 60 bytes (MET-82).
    assert metrics.feedback_share(12 + 8, 1500 + 60) == pytest.approx(0.01282, abs=1e-5)
    assert metrics.feedback_rate(500, 20.0) == 25.0


def test_starvation_lasts_more_than_ten_seconds() -> None:
    assert metrics.starved([0.0] * 11, 1.0, 1.0)
    assert not metrics.starved([0.0] * 10 + [1.0] + [0.0] * 10, 1.0, 1.0)


def test_quantile_of_a_stored_distribution() -> None:
    assert metrics.quantile_from_distribution([0, 0.5, 1], [0, 10, 20], 0.95) == pytest.approx(19)


# --- differences of two sides

# The data are Student's, on sleep (Biometrika 6, 1908). The expected results are those of R's t.test.
FIRST = [0.7, -1.6, -0.2, -1.2, -0.1, 3.4, 3.7, 0.8, 0.0, 2.0]
SECOND = [1.9, 0.8, 1.1, 0.1, -0.1, 4.4, 5.5, 1.6, 4.6, 3.4]


def test_met_91_paired_difference_of_a_published_example() -> None:
    found = metrics.paired_difference(FIRST, SECOND)
    assert (found.mean, found.n) == (pytest.approx(-1.58), 10)
    assert (found.low, found.high) == (pytest.approx(-2.4598858), pytest.approx(-0.7001142))
    assert found.p == pytest.approx(0.002833, abs=1e-6)


def test_met_92_unpaired_difference_of_a_published_example() -> None:
    found = metrics.unpaired_difference(FIRST, SECOND)
    assert (found.low, found.high) == (pytest.approx(-3.3654832), pytest.approx(0.2054832))
    assert found.p == pytest.approx(0.07939, abs=1e-5)


def test_met_93_correction_of_a_published_example() -> None:
    """These are the 15 p-values of Benjamini and Hochberg (1995), section 3.2.

    At 0.05, four hypotheses are rejected.
    """
    published = [0.0001, 0.0004, 0.0019, 0.0095, 0.0201, 0.0278, 0.0298, 0.0344, 0.0459, 0.3240]
    published += [0.4262, 0.5719, 0.6528, 0.7590, 1.0]
    found = metrics.adjusted(published)
    assert [p < 0.05 for p in found] == [True] * 4 + [False] * 11
    assert metrics.adjusted([]) == []


def test_differences_without_spread_are_judged_by_exact_tests() -> None:
    assert metrics.paired_difference([4, 5, 6], [3, 4, 5]).p == 2 / 2**3
    assert metrics.paired_difference([4, 5], [4, 5]).p == 1
    assert metrics.unpaired_difference([2, 2, 2], [1, 1, 1]).p == 2 / 20
    assert metrics.unpaired_difference([2, 2, 2], [2, 2]).p == 1
    assert metrics.unpaired_difference([2, 2, 2], [1, 1]).p == 1 / 10
    rounded = [1 - 1e-16] * 9 + [1.0]
    assert metrics.unpaired_difference([1.0] * 10, rounded).p == 1
    # Without rounding, these differences would be equal.
    assert metrics.paired_difference([0.15, 0.25, 0.35], [0.1, 0.2, 0.3]).p == 2 / 2**3
    assert metrics.paired_difference([0.1 + 0.2, 0.7 + 0.1], [0.3, 0.8]).p == 1


@given(st.lists(st.floats(-1e6, 1e6), min_size=2, max_size=12), st.floats(0.5, 0.99))
def test_the_interval_excludes_zero_if_the_test_is_significant(values: list[float], level: float) -> None:
    found = metrics.paired_difference(values, [0.0] * len(values), level)
    if np.ptp(values) > 1e-3 and abs(found.p - (1 - level)) > 1e-6:
        assert found.excludes(0.0) == (found.p < 1 - level)


def test_one_run_has_no_test() -> None:
    assert math.isnan(metrics.paired_difference([1.0], [2.0]).p)
    assert math.isnan(metrics.unpaired_difference([1.0], [2.0, 3.0]).p)
    assert metrics.unpaired_difference([1.0], [2.0, 4.0]).mean == -2.0
