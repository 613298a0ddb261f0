"""Values with units, as users write them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from narrows import units
from narrows.errors import Expected

MOST = 10**15
"""The largest number of ns, bit/s or bytes that is valid."""


@pytest.mark.parametrize(
    ("text", "nanos"),
    [
        ("20ms", 20_000_000),
        ("1us", 1_000),
        ("2s", 2 * 10**9),
        ("1min", 60 * 10**9),
        ("1.5 ms", 1_500_000),
        (0, 0),
    ],
)
def test_durations(text, nanos):
    assert units.parse_duration(text) == nanos


@pytest.mark.parametrize(
    ("text", "bits"),
    [
        ("100mbit", 10**8),
        ("1gbit", 10**9),
        ("10kbit/s", 10**4),
        ("2.5Mbit/s", 2_500_000),
        ("100Mbps", 10**8),
        ("1MB/s", 8 * 10**6),
        ("1Mibit", 2**20),
        ("0mbit", 0),
    ],
)
def test_rates(text, bits):
    assert units.parse_rate(text) == bits


@pytest.mark.parametrize(
    ("text", "limit"),
    [
        ("1000p", "1000p"),
        ("64kB", "64kB"),
        ("1MiB", "1048576B"),
        ("0.5bdp", "0.5bdp"),
        ("infinite", "infinite"),
        ("1.0bdp", "1bdp"),
    ],
)
def test_queue_lengths(text, limit):
    assert units.parse_limit(text) == limit
    assert units.parse_limit(limit) == limit


@pytest.mark.parametrize(("text", "p"), [("0.1%", 0.001), (0.001, 0.001), ("0.25", 0.25), (1, 1.0)])
def test_probabilities(text, p):
    assert units.parse_probability(text) == p


@pytest.mark.parametrize(
    ("parse", "wrong"),
    [
        (units.parse_duration, "20"),
        (units.parse_duration, 20),
        (units.parse_duration, "-1s"),
        (units.parse_duration, "1e99h"),
        (units.parse_duration, True),
        (units.parse_rate, "100"),
        (units.parse_rate, "100MB"),
        (units.parse_rate, "1bit"),
        (units.parse_rate, "nan mbit"),
        (units.parse_size, "64kb"),
        (units.parse_size, "64mbit"),
        (units.parse_probability, 1.01),
        (units.parse_probability, float("nan")),
        (units.parse_limit, "0p"),
        (units.parse_limit, "1.5p"),
        (units.parse_limit, 1000),
    ],
)
def test_error_messages_give_an_example(parse, wrong):
    with pytest.raises(Expected, match="such as"):
        parse(wrong)


@given(st.integers(0, MOST))
def test_durations_round_trip(nanos):
    assert units.parse_duration(units.format_duration(nanos)) == nanos


@given(st.integers(8, MOST))
def test_rates_round_trip(bits):
    assert units.parse_rate(units.format_rate(bits)) == bits


@given(st.integers(0, MOST))
def test_sizes_round_trip(size):
    assert units.parse_size(units.format_size(size)) == size


@given(st.text(max_size=20) | st.floats() | st.integers() | st.none() | st.lists(st.integers()))
def test_parsers_refuse_or_accept_but_never_crash(value):
    for parse in (
        units.parse_duration,
        units.parse_rate,
        units.parse_size,
        units.parse_probability,
        units.parse_limit,
    ):
        try:
            parse(value)
        except Expected:
            continue
