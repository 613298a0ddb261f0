"""Units of the figures in the terminal."""

import math

import pytest
from narrows.cli.figures import fitting, heading, number


@pytest.mark.parametrize(
    ("times_s", "title", "texts"),
    [
        ([46.2e-6, 1.0e-3, math.nan], "RTT mean µs", ["46.2", "1000", "-"]),
        ([0.0, 3e-9, 4e-6], "RTT mean µs", ["0.00", "0.00", "4.00"]),
        ([46.2e-6, 40e-3], "RTT mean ms", ["0.05", "40.0"]),
        ([0.3e-3, 0.4e-3], "RTT mean ms", ["0.30", "0.40"]),
        ([0.0, 0.0], "RTT mean ms", ["0.00", "0.00"]),
        ([math.nan], "RTT mean ms", ["-"]),
    ],
)
def test_short_times_are_in_microseconds(times_s, title, texts):
    of = fitting("rtt_mean_s", times_s)
    assert heading(of) == title
    assert [number(value, of.size) for value in times_s] == texts


def test_counts_have_no_unit():
    assert heading(fitting("retransmits", [1e-6])) == "retransmits"
